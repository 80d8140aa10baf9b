package annotations

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// inputOf returns an Input for one device. changes holds the change of allocated at each event, and micros the time of
// each event in microseconds.
func inputOf(changes, micros []int64) Input {
	in := Input{Events: &schemas.EventColumns{}, Allocated: []int64{0}, Text: func(int) string { return "" }}
	for i, c := range changes {
		action := schemas.ActionAlloc
		if c < 0 {
			action = schemas.ActionFreeRequested
		}
		in.Events.Append(action, 1, c, 0, micros[i]*1000, 0, 0, 0)
		in.Allocated = append(in.Allocated, in.Allocated[i]+c)
	}
	return in
}

// annotate adds annotations written as "name+ microsecond" for a beginning and "name- microsecond" for an end.
func annotate(in *Input, marks ...string) {
	for _, m := range marks {
		name, at, _ := strings.Cut(m, " ")
		a := torchsnap.Annotation{Name: name[:len(name)-1], Stage: "START"}
		if strings.HasSuffix(name, "-") {
			a.Stage = "END"
		}
		fmt.Sscan(at, &a.TimeNS)
		a.TimeNS *= 1000
		in.Annotations = append(in.Annotations, a)
	}
}

func show(phases []Interval) string {
	var out []string
	for _, p := range phases {
		out = append(out, fmt.Sprintf("%s %d-%d", p.Phase, p.Begin, p.End))
	}
	return strings.Join(out, ", ")
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		what  string
		marks []string
		want  string
		note  string
	}{
		{"after each other", []string{"a+ 5", "a- 25", "b+ 35", "b- 55"}, "a 0-2, b 3-5", ""},
		{"inside each other", []string{"a+ 15", "b+ 25", "b- 35", "a- 55"}, "a 1-2, b 2-3, a 3-5", ""},
		{"without an event", []string{"a+ 31", "a- 32"}, "a 3-3", ""},
		{"torch's own", []string{"Optimizer.step#SGD.step+ 15", "Optimizer.step#SGD.step- 25"}, "optimizer 1-2", ""},
		{"crossing", []string{"a+ 5", "b+ 15", "a- 25", "b- 35", "c+ 45", "c- 55"}, "c 4-5",
			"annotations named a cross others: they are no phase"},
		{"no end", []string{"a+ 5", "a- 15", "b+ 45"}, "a 0-1", "1 annotation has no end, or no beginning"},
		{"no beginning", []string{"b- 5", "a+ 15", "a- 25"}, "a 1-2", "1 annotation has no end, or no beginning"},
		{"no end, and it may be the highest", []string{"a+ 5", "a- 15", "a+ 45"}, "",
			"annotations named a cannot be told from what lies beside them: they are no phase"},
		{"no end inside another", []string{"a+ 5", "b+ 15", "a- 25"}, "a 0-2", "1 annotation has no end"},
		{"an event in its last microsecond, which is the highest", []string{"a+ 5", "a- 20"}, "",
			"annotations named a cannot be told"},
		{"an event in its last microsecond, which changes no figure", []string{"a+ 5", "a- 40", "a+ 45", "a- 55"},
			"a 0-4, a 4-5", ""},
	} {
		in := inputOf([]int64{10, 10, -5, -5, 100}, []int64{10, 20, 30, 40, 50})
		if strings.HasPrefix(c.what, "an event in its last") {
			in = inputOf([]int64{10, 10, 5, -5, 100}, []int64{10, 20, 30, 40, 50})
		}
		if c.note == "" && c.what != "an event in its last microsecond, which changes no figure" {
			c.note = "-"
		}
		annotate(&in, c.marks...)
		phases, notes := Find(in)
		if got := show(phases); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		if all := strings.Join(notes, "; "); c.note == "-" && all != "" || !strings.Contains(all, strings.Trim(c.note, "-")) {
			t.Errorf("%s: %q, want %q", c.what, all, c.note)
		}
	}
}

// If events have no times, or if older events are missing, Find leaves out ranges whose place among the events is
// unknown.
func TestRangesWithoutTheirEvents(t *testing.T) {
	in := inputOf([]int64{1, 1}, []int64{0, 0})
	annotate(&in, "a+ 5", "a- 25")
	if phases, notes := Find(in); phases != nil || len(notes) != 1 || !strings.Contains(notes[0], "no times") {
		t.Errorf("%v, %q", phases, notes)
	}
	in = inputOf([]int64{1, 1}, []int64{20, 10})
	annotate(&in, "a+ 5", "a- 25")
	if phases, notes := Find(in); phases != nil || !strings.Contains(notes[0], "backwards") {
		t.Errorf("%v, %q", phases, notes)
	}
	in = inputOf([]int64{1, 1}, []int64{10, 20})
	in.Late = true
	annotate(&in, "a+ 1", "a- 2", "a+ 5", "a- 12", "a+ 15", "a- 25")
	if phases, notes := Find(in); show(phases) != "a 1-2" || !strings.Contains(notes[0], "2 annotations began before") {
		t.Errorf("%s, %q", show(phases), notes)
	}
}

// A user_defined event begins a phase. A range that the script annotates takes precedence over a user_defined event.
// The frames of a user's rule take precedence over both.
func TestMarkersAndRules(t *testing.T) {
	in := inputOf([]int64{1, 0, 1, 1, 0, 1, 1, 1, 1}, []int64{10, 20, 30, 40, 50, 60, 70, 80, 90})
	in.Events.Action[1], in.Events.Action[4] = schemas.ActionUserDefined, schemas.ActionUserDefined
	in.Text = func(event int) string { return map[int]string{1: "load", 4: "train, then"}[event] }
	annotate(&in, "a+ 35", "a- 45")
	phases, notes := Find(in)
	if want := "load 2-3, a 3-4, load 4-5, train; then 5-9"; show(phases) != want || len(notes) > 0 {
		t.Errorf("%s, %q, want %s", show(phases), notes, want)
	}
	// Stack 1 matches no rule, stacks 2 and 3 match rules, and stack 4 has no frame of Python.
	in.Phases, in.Python = []string{"", "", "x", "y", ""}, []bool{false, true, true, true, false}
	copy(in.Events.Stack, []uint32{1, 0, 2, 2, 4, 2, 4, 3, 1})
	phases, _ = Find(in)
	if want := "x 2-6, train; then 6-7, y 7-8, train; then 8-9"; show(phases) != want {
		t.Errorf("%s, want %s", show(phases), want)
	}
	if got, want := Sources(phases), "2 stretches after user_defined events, 2 stretches of rules' frames"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// If events happen in the same microsecond as an end of a phase, their order is unknown. Find's highest and lowest peak
// of the phase both come from a possible order. Each of the remaining events belongs to the innermost open range.
func TestRangesAreTheInnermost(t *testing.T) {
	kept, dropped := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		n := 3 + r.IntN(12)
		var changes, micros []int64
		now, at := int64(0), int64(0)
		for range n {
			c := int64(r.IntN(5)) + 1
			if now > 0 && r.IntN(2) == 0 {
				c = -min(c, now)
			}
			at += int64(r.IntN(3)) * 2
			now, changes, micros = now+c, append(changes, c), append(micros, max(at, 1))
		}
		in := inputOf(changes, micros)
		// if odd is 1, annotations lie between the events' times; if odd is 0, some have the time of an event
		odd := int64(r.IntN(2))
		var open []string
		for when := int64(2); when <= at+4; when += 2 {
			for range r.IntN(3) {
				if len(open) > 0 && r.IntN(2) == 0 {
					annotate(&in, fmt.Sprintf("%s- %d", open[len(open)-1], when+odd))
					open = open[:len(open)-1]
				} else if len(open) < 3 {
					open = append(open, string(rune('a'+r.IntN(4))))
					annotate(&in, fmt.Sprintf("%s+ %d", open[len(open)-1], when+odd))
				}
			}
		}
		for ; len(open) > 0; open = open[:len(open)-1] {
			annotate(&in, fmt.Sprintf("%s- %d", open[len(open)-1], at+9))
		}
		phases, notes := Find(in)
		names := map[string]bool{}
		for _, p := range phases {
			names[p.Phase] = true
		}
		kept, dropped = kept+len(names), dropped+len(notes)
		for range 5 {
			high, low := assigned(&in, names, r)
			for name := range names {
				var got []int64
				for _, p := range phases {
					if p.Phase == name {
						got = append(got, slices.Max(in.Allocated[p.Begin:p.End+1]))
					}
				}
				if h, ok := high[name]; ok && (slices.Max(got) != h || slices.Min(got) != low[name]) {
					t.Fatalf("seed %d: %s from %d to %d, want %d to %d; %s", seed, name, slices.Min(got), slices.Max(got),
						low[name], h, show(phases))
				}
			}
		}
	}
	if kept < 1000 || dropped < 100 {
		t.Errorf("%d names kept, %d notes", kept, dropped)
	}
}

// assigned takes the events that have the same microsecond as an annotation, and puts each at random before or after
// the annotation. assigned returns the highest and the lowest peak of the stretches in which a name's range is the
// innermost. assigned leaves out names that are no phase.
func assigned(in *Input, names map[string]bool, r *rand.Rand) (high, low map[string]int64) {
	high, low = map[string]int64{}, map[string]int64{}
	var stack []string
	from := int64(0)
	take := func(to int64) {
		if len(stack) == 0 {
			return
		}
		peak, name := slices.Max(in.Allocated[from:to+1]), stack[len(stack)-1]
		if h, ok := high[name]; !ok || peak > h {
			high[name] = peak
		}
		if l, ok := low[name]; !ok || peak < l {
			low[name] = peak
		}
	}
	last := int64(0)
	for _, a := range in.Annotations {
		if !names[a.Name] {
			continue
		}
		lo, hi := int64(0), int64(0)
		for _, ns := range in.Events.TimeNS {
			if ns < a.TimeNS {
				lo++
			}
			if ns <= a.TimeNS {
				hi++
			}
		}
		at := max(last, lo+r.Int64N(hi-lo+1))
		last = at
		take(at)
		if a.Stage == "START" {
			stack = append(stack, a.Name)
		} else {
			stack = stack[:len(stack)-1]
		}
		from = at
	}
	return high, low
}
