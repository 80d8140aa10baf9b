package store

import (
	"cmp"
	"slices"
	"strings"

	nearly "github.com/dpsight/dpsight/schemas/near"
)

// near lists the run names and ids that resemble arg, the likeliest first.
func near(runs []Run, arg string) []string {
	type candidate struct {
		word string
		cost int
	}
	var found []candidate
	seen := map[string]bool{}
	consider := func(word string) {
		if word == "" || seen[word] {
			return
		}
		seen[word] = true
		cost := nearly.Distance(strings.ToLower(arg), strings.ToLower(word))
		if arg != "" && strings.Contains(strings.ToLower(word), strings.ToLower(arg)) {
			cost = 1
		}
		if cost <= 1+len(arg)/3 {
			found = append(found, candidate{word, cost})
		}
	}
	for _, r := range runs {
		consider(r.Manifest.Name)
		consider(r.ID)
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.cost, b.cost) })
	words := make([]string, 0, 4)
	for _, c := range found[:min(len(found), 4)] {
		words = append(words, c.word)
	}
	return words
}
