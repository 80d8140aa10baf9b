package report

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// notIngested is the only note on a run that has no tables yet.
const notIngested = "not ingested yet"

// runNotes gathers notes on single runs under a table, and merges equal notes of several runs into one line. The note
// that a run has no tables yet comes last: for a store that was never ingested, it would fill a page.
type runNotes struct {
	lines   []runNote
	pending []string
}

type runNote struct {
	labels []string // labels of the runs that have the note; none = the note concerns the table
	text   string
}

// add says something of a run, once.
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

// say says something of several runs, once.
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

// all are the notes.
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
