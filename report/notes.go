package report

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// notIngested is the only note on a run that has no tables yet.
const notIngested = "not ingested yet"

// runNotes collects notes on single runs for the end of a table, and merges equal notes on several runs into one line.
// The note that a run has no tables yet comes last: in a store that was never ingested it names many runs.
type runNotes struct {
	lines   []runNote
	pending []string
}

type runNote struct {
	labels []string // runs that have the note; none if it concerns the whole table
	text   string
}

// add adds a note on one run, unless the run has it already.
func (n *runNotes) add(label, text string) {
	if text == notIngested {
		n.pending = include(n.pending, label)
		return
	}
	if i := slices.IndexFunc(n.lines, func(l runNote) bool { return l.labels != nil && l.text == text }); i >= 0 {
		n.lines[i].labels = include(n.lines[i].labels, label)
		return
	}
	n.lines = append(n.lines, runNote{[]string{label}, text})
}

// say adds a note on the whole table, unless the table has it already.
func (n *runNotes) say(text string) {
	if !slices.ContainsFunc(n.lines, func(l runNote) bool { return l.labels == nil && l.text == text }) {
		n.lines = append(n.lines, runNote{text: text})
	}
}

func include(labels []string, label string) []string {
	if slices.Contains(labels, label) {
		return labels
	}
	return append(labels, label)
}

// all returns the notes as lines.
func (n *runNotes) all() (out []string) {
	for _, l := range n.lines {
		if l.labels == nil {
			out = append(out, l.text)
		} else {
			out = append(out, schemas.Shortlist(l.labels, mostNamed)+": "+l.text)
		}
	}
	if len(n.pending) > 0 {
		out = append(out, notIngested+": "+strings.Join(n.pending, ", "))
	}
	return out
}
