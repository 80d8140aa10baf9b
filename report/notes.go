package report

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
)

// runNotes gathers what must be said of single runs under a table. That a run has no tables yet is said in one note of all
// such runs: of a store that nobody ingested it would be a page.
type runNotes struct {
	lines, pending []string
}

// add says something of a run, once.
func (n *runNotes) add(label, text string) {
	if text != analyze.NotIngested {
		n.say(label + ": " + text)
	} else if !slices.Contains(n.pending, label) {
		n.pending = append(n.pending, label)
	}
}

// say says something of several runs, once.
func (n *runNotes) say(text string) {
	if !slices.Contains(n.lines, text) {
		n.lines = append(n.lines, text)
	}
}

// all are the notes.
func (n *runNotes) all() []string {
	if len(n.pending) == 0 {
		return n.lines
	}
	return append(slices.Clone(n.lines), analyze.NotIngested+": "+strings.Join(n.pending, ", "))
}
