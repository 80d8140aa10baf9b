package suite

import (
	"slices"
	"testing"
)

// If a suite records one repeat of each experiment, the recorded repeats are spread over several rounds. If the file
// is reordered, the same repeats are recorded.
func TestOneRepeatIsRecorded(t *testing.T) {
	s, err := Load("headline-batch")
	if err != nil {
		t.Fatal(err)
	}
	of := func() (rounds map[string]int) {
		rounds = map[string]int{}
		for _, task := range s.Tasks() {
			if s.records(task) {
				if _, twice := rounds[task.Key]; twice {
					t.Errorf("%s is recorded twice", task.Name)
				}
				rounds[task.Key] = task.Repetition
			}
		}
		return rounds
	}
	rounds, in := of(), map[int]int{}
	for _, r := range rounds {
		in[r]++
	}
	if len(rounds) != len(s.Experiments) || len(in) < 3 {
		t.Errorf("of %d experiments so many are recorded in each round: %v", len(s.Experiments), in)
	}
	slices.Reverse(s.Experiments)
	for key, r := range of() {
		if rounds[key] != r {
			t.Errorf("reordered, an experiment is recorded in round %d, and not in %d", r, rounds[key])
		}
	}
	s.Record = RecordFirst
	for key, r := range of() {
		if r != 0 {
			t.Errorf("%s is recorded in round %d", key, r)
		}
	}
	s.Record = RecordAll
	for _, task := range s.Tasks() {
		if !s.records(task) {
			t.Errorf("%s is not recorded in round %d", task.Name, task.Repetition)
		}
	}
	if _, err := Parse("x", []byte("record: last\nexperiments: [{method: vanilla}]")); err == nil {
		t.Error("record: last means something")
	}
}

// If a user adds repeats to an unfinished suite, the recorded repeat of an experiment stays the same or becomes the
// added one. If it became another one that is already made, no repeat might be recorded.
func TestMoreRepeatsAreRecorded(t *testing.T) {
	s, err := Load("headline-batch")
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, x := range s.Experiments {
		x.Repeats = 1
		for before := x.recorded(); x.Repeats < 20; before = x.recorded() {
			x.Repeats++
			switch now := x.recorded(); now {
			case before:
			case x.Repeats - 1:
				moved++
			default:
				t.Errorf("%s: of %d repeats %d is recorded, of one less %d was", x.Name, x.Repeats, now, before)
			}
		}
	}
	if moved < len(s.Experiments) {
		t.Errorf("of %d experiments the recorded one is %d times another", len(s.Experiments), moved)
	}
}
