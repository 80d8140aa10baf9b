package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/identity"
)

// undigested is the beginning of every note about files without digests.
const undigested = "an older dpsight recorded no digests: damage to "

// runSources returns the notes on where the figures of one run come from.
func runSources(id *identity.Identity) []string {
	notes := sourceNotes(id)
	if id.Undigested {
		notes = append(notes, undigested+"its files is not detected")
	}
	return notes
}

// digestNotes say in one line how many of several runs have files without digests.
func digestNotes(n int, run func(i int) *identity.Identity) []string {
	without := 0
	for i := range n {
		if run(i).Undigested {
			without++
		}
	}
	return undigestedOf(without, n)
}

func undigestedOf(without, n int) []string {
	switch {
	case without == 0:
		return nil
	case n == 1:
		return []string{undigested + "its files is not detected"}
	case without == n:
		return []string{undigested + "the files of these runs is not detected"}
	}
	return []string{fmt.Sprintf("%sthe files of %d of the %d runs is not detected", undigested, without, n)}
}
