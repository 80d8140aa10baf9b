package livetest_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// The script draws batches of varying size, so some bare steps have a batch size that no instrumented step had. At
// every event, each block of a bare step must have the category that it has in a run whose steps are all instrumented.
// In several of these runs the peak lies in a bare step.
func TestBatchesOfVaryingSize(t *testing.T) {
	python := testkit.Python(t)
	modes, seeds := []string{"functorch", "ew", "ghost", "plain", "ghost-physical"}, 1
	if long() {
		modes, seeds = append(modes, "hooks-physical", "hooks-conv", "ghost-conv", "functorch-conv",
			"hooks-physical-conv"), 2
	}
	type training struct {
		mode string
		seed int
	}
	scripts := []training{{"hooks", 0}, {"hooks", 1}, {"prefetch", 0}}
	for _, mode := range modes {
		for seed := range seeds {
			scripts = append(scripts, training{mode, seed})
		}
	}
	peaks := make(chan bool, len(scripts))
	t.Run("scripts", func(t *testing.T) {
		for _, s := range scripts {
			t.Run(fmt.Sprintf("%s-%d", s.mode, s.seed), func(t *testing.T) {
				if s.seed > 0 || s.mode != "hooks" {
					testkit.Rest(t) // TestBatchesOfVaryingSize without the rest covers this already
				}
				t.Parallel()
				takeSlot(t)
				arguments := []string{python, script(t, "poisson.py"), s.mode, fmt.Sprint(s.seed)}
				got, want := record(t, environment(), arguments...), record(t, environment(),
					append(arguments, "tagged")...)
				for _, r := range []*recorded{got, want} {
					if r.manifest.Status != schemas.StatusOK {
						t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
					}
					expectConserved(t, r.dir, r.report)
				}
				expectSameCategories(t, got.dir, want.dir)
				for _, b := range got.report.Devices[0].BareSteps {
					if b.Like == nil {
						t.Errorf("step %d is like no other", b.Step)
					}
				}
				if s.mode == "prefetch" {
					expectInputs(t, got.dir)
				}
				peaks <- got.report.Devices[0].InstrumentedPeakSeq == nil
			})
		}
	})
	close(peaks)
	bare, all := 0, len(peaks) == len(scripts) // otherwise only some of the scripts were run
	for b := range peaks {
		if b {
			bare++
		}
	}
	if all && bare < 3 {
		t.Errorf("only %d peaks lie in steps without tags: choose other seeds", bare)
	}
}

// expectInputs checks a script that makes each batch one step early. Most of its steps are bare. Every batch that the
// script made on the other stream must be an input from its birth on.
func expectInputs(t *testing.T, dir string) {
	t.Helper()
	steps, err := schemas.Steps.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	batches, inARow := 0, 0
	all := histories(t, dir)
	for i := 1; i+1 < len(steps); i++ {
		s := steps[i]
		if !s.Instrumented && !steps[i+1].Instrumented {
			inARow++
		}
		for _, h := range all {
			if h.Stream != 0 && h.AllocSeq > s.BeginSeq && h.AllocSeq <= s.EndSeq {
				batches++
				if h.categories[0].category != schemas.Inputs {
					t.Errorf("step %d: a batch of %d bytes is %v", s.Step, h.RequestedBytes, h.categories)
				}
			}
		}
	}
	if batches != 2*(len(steps)-2) || inARow < len(steps)/3 {
		t.Errorf("%d batches and %d bare steps before bare ones in %d steps", batches, inARow, len(steps))
	}
}

// expectSameCategories checks that every block of a bare step has the same categories as the same block of the run in
// the folder tagged, whose steps are all instrumented.
func expectSameCategories(t *testing.T, dir, tagged string) {
	t.Helper()
	steps, err := schemas.Steps.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, want := histories(t, dir), histories(t, tagged)
	if len(got) != len(want) {
		t.Fatalf("%d blocks, %d where all steps have tags: the runs differ", len(got), len(want))
	}
	compared, wrong := 0, 0
	for _, s := range steps {
		if s.Instrumented || !s.Recorded {
			continue
		}
		for i := range got {
			a, b := &got[i], &want[i]
			if a.AllocSeq != b.AllocSeq || a.RequestedBytes != b.RequestedBytes {
				t.Fatalf("block %d of the runs differs", i)
			}
			if a.AllocSeq <= s.BeginSeq || a.AllocSeq > s.EndSeq {
				continue
			}
			compared++
			if !slices.Equal(a.categories, b.categories) {
				if wrong++; wrong <= 5 {
					t.Errorf("step %d, block %d of %d bytes, made in %s: %v, and %v where all steps have tags", s.Step,
						i, a.RequestedBytes, a.Phase, a.categories, b.categories)
				}
			}
		}
	}
	if compared == 0 {
		t.Error("no step is without tags")
	}
	if wrong > 5 {
		t.Errorf("%d of %d blocks differ", wrong, compared)
	}
}

// history is a block with the categories under which it counts, one after another. Each category has the event from
// which on the block counts under it.
type history struct {
	schemas.Allocation
	categories []categorySince
}

type categorySince struct {
	seq      int64
	category string
}

func histories(t *testing.T, dir string) []history {
	t.Helper()
	allocations, err := schemas.Allocations.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := schemas.Owners.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	owners := map[int64][]*schemas.Owner{}
	for i := range rows {
		owners[rows[i].AllocID] = append(owners[rows[i].AllocID], &rows[i])
	}
	out := make([]history, len(allocations))
	for i := range allocations {
		h := history{Allocation: allocations[i]}
		own := owners[h.AllocID]
		var at []int64
		for _, o := range own {
			at = append(at, o.BeginSeq)
			if o.EndSeq > 0 && (h.FreeRequestedSeq == 0 || o.EndSeq < h.FreeRequestedSeq) {
				at = append(at, o.EndSeq)
			}
		}
		slices.Sort(at)
		for _, seq := range slices.Compact(at) {
			var held []*schemas.Owner
			for _, o := range own {
				if o.HoldsAt(seq) {
					held = append(held, o)
				}
			}
			first := slices.MinFunc(held, func(a, b *schemas.Owner) int {
				return cmp.Compare(schemas.Precedence(a.Category), schemas.Precedence(b.Category))
			})
			if n := len(h.categories); n == 0 || h.categories[n-1].category != first.Category {
				h.categories = append(h.categories, categorySince{seq, first.Category})
			}
		}
		out[i] = h
	}
	return out
}
