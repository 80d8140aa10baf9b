package report

import (
	"slices"
	"testing"
)

// If a note applies to several runs, it appears once. The note that runs have no tables yet also appears once.
func TestRunNotes(t *testing.T) {
	var n runNotes
	n.add("a", "slow")
	n.add("a", "slow")
	n.add("b", "slow")
	n.add("b", notIngested)
	n.say("all are predicted")
	n.add("c", notIngested)
	n.add("b", notIngested)
	n.say("all are predicted")
	if want := []string{"a, b: slow", "all are predicted", "not ingested yet: b, c"}; !slices.Equal(n.all(), want) {
		t.Errorf("%q", n.all())
	}
}
