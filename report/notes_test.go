package report

import (
	"slices"
	"testing"
)

// A note that applies to several runs appears once, and so does the note that they have no tables yet.
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
