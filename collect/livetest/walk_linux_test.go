package livetest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// storage is the address and the size in bytes of a tensor's storage.
type storage [2]uint64

// A walk has the storages that the script itself found at a boundary, by walking over its models and optimizers: after
// a backward, or at a step's end.
type walk struct {
	Edge       string    `json:"edge"`
	Step       int64     `json:"step"`
	Parameters []storage `json:"parameters"`
	Buffers    []storage `json:"buffers"`
	Gradients  []storage `json:"gradients"`
	State      []storage `json:"optimizer_state"`
	Allocated  int64     `json:"allocated"`
}

// In instrumented steps the tables hold exactly the storages that a walk of the models and their optimizers finds, at
// the end of each backward and of each step. In bare steps, which have no tags, the breakdown has as many bytes as the
// walk under each category. At the end of every step, the tables have as many allocated bytes as the script read.
func TestTablesAgreeWithAWalk(t *testing.T) {
	python := testkit.Python(t)
	for _, c := range []struct {
		name         string
		microbatches int
	}{{"vanilla", 1}, {"momentum", 1}, {"accumulate", 3}, {"keep", 1}, {"gan", 1}, {"dpsgd", 1}, {"ghost", 1},
		{"transformer-dpsgd", 1},
		{"transformer-ghost", 1}} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Part(t, c.name != "dpsgd" && c.name != "transformer-ghost")
			t.Parallel()
			takeSlot(t)
			r := record(t, environment(), python, script(t, "walk.py"), c.name)
			if r.manifest.Status != schemas.StatusOK {
				t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
			}
			expectConserved(t, r.dir, r.report)
			walks := walksOf(t, r.stdout)
			const steps = 6
			if len(walks) != steps*(c.microbatches+1) {
				t.Fatalf("%d walks", len(walks))
			}
			expectWalks(t, r.dir, r.manifest, walks, c.microbatches)
		})
	}
}

func walksOf(t *testing.T, stdout string) []walk {
	t.Helper()
	var out []walk
	for line := range strings.Lines(stdout) {
		if text, ok := strings.CutPrefix(line, "WALK "); ok {
			var w walk
			if err := json.Unmarshal([]byte(text), &w); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			out = append(out, w)
		}
	}
	return out
}

func expectWalks(t *testing.T, dir string, manifest *schemas.Manifest, walks []walk, microbatches int) {
	t.Helper()
	steps, err := schemas.Steps.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	phases, err := schemas.Phases.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	allocations, err := schemas.Allocations.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := schemas.Owners.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[int64]*schemas.Allocation{}
	for i := range allocations {
		blocks[allocations[i].AllocID] = &allocations[i]
	}
	tables, err := store.Load(store.Run{ID: filepath.Base(dir), Dir: dir, Manifest: manifest},
		schemas.WantMemory|schemas.WantTimes|schemas.WantEvents)
	if err != nil {
		t.Fatal(err)
	}
	in := *tables
	microbatch, compared, bare := 0, 0, 0
	for _, w := range walks {
		if w.Step >= int64(len(steps)) {
			t.Fatalf("step %d is not among the %d of the table", w.Step, len(steps))
		}
		s := steps[w.Step]
		seq := s.EndSeq
		if w.Edge == "backward" {
			which := microbatch
			if microbatches == 1 {
				which = -1
			}
			if seq, err = endOfBackward(phases, w.Step, which); err != nil {
				t.Fatal(err)
			}
			microbatch++
		} else {
			microbatch = 0
		}
		// at a backward's end the sums differ, since autograd then frees the root gradients
		if sum := allocatedAt(allocations, seq); w.Edge == "step" && sum != w.Allocated {
			t.Errorf("step %d, %s: %d bytes are allocated after event %d, the walk reads %d", w.Step, w.Edge, sum, seq,
				w.Allocated)
		}
		if !s.Instrumented {
			bare += expectSums(t, in, w, seq)
			continue
		}
		compared++
		for category, want := range map[string][]storage{schemas.Parameters: w.Parameters, schemas.Buffers: w.Buffers,
			schemas.Gradients: w.Gradients, schemas.OptimizerState: w.State} {
			got := owned(blocks, owners, category, seq)
			if !maps.Equal(got, set(want)) {
				t.Errorf("step %d, %s: %s after event %d: %s", w.Step, w.Edge, category, seq,
					difference(got, set(want)))
			}
		}
	}
	if compared < len(walks)/2 || bare < 1 {
		t.Errorf("%d of %d walks were in instrumented steps, %d in bare ones", compared, len(walks), bare)
	}
}

// expectSums compares what a walk finds in a bare step with the breakdown at the walk's moment. expectSums compares
// sums of bytes by category, and not single blocks: blocks of a bare step have no tags, and are only matched to similar
// blocks of another step.
func expectSums(t *testing.T, in schemas.Tables, w walk, seq int64) (compared int) {
	t.Helper()
	run, err := memory.Breakdown(in, memory.At{Event: &seq})
	if err != nil || len(run.Devices) != 1 {
		t.Fatalf("%v, %d devices", err, len(run.Devices))
	}
	for category, walked := range map[string][]storage{schemas.Parameters: w.Parameters, schemas.Buffers: w.Buffers,
		schemas.Gradients: w.Gradients, schemas.OptimizerState: w.State} {
		want := int64(0)
		for _, s := range walked {
			want += int64(s[1])
		}
		if got := run.Devices[0].Category(category).Bytes; got != want {
			t.Errorf("step %d, which is bare, %s: %s hold %d bytes after event %d, the walk finds %d", w.Step, w.Edge,
				category, got, seq, want)
		}
	}
	return 1
}

// endOfBackward returns the last event of a microbatch's backward. If microbatch is -1, it returns the last event of
// the step's last backward.
func endOfBackward(phases []schemas.Phase, step int64, microbatch int) (int64, error) {
	seq := int64(-1)
	for _, p := range phases {
		if p.Step == step && (microbatch < 0 || int(p.Microbatch) == microbatch) &&
			strings.HasPrefix(p.Phase, schemas.PhaseBackward) {
			seq = max(seq, p.EndSeq)
		}
	}
	if seq < 0 {
		return 0, fmt.Errorf("step %d has no backward of microbatch %d", step, microbatch)
	}
	return seq, nil
}

// owned returns the blocks that a category's owners hold just after an event, even if owners of other categories hold
// them too: bytes by address.
func owned(blocks map[int64]*schemas.Allocation, owners []schemas.Owner, category string, seq int64) map[uint64]uint64 {
	out := map[uint64]uint64{}
	for i := range owners {
		o := &owners[i]
		if a := blocks[o.AllocID]; o.Category == category && o.HoldsAt(seq) && a.LiveAt(seq) {
			out[a.Address] = uint64(a.RequestedBytes)
		}
	}
	return out
}

func set(storages []storage) map[uint64]uint64 {
	out := map[uint64]uint64{}
	for _, s := range storages {
		out[s[0]] = s[1]
	}
	return out
}

// difference describes in one line the storages by which two sets differ.
func difference(got, want map[uint64]uint64) string {
	var lines []string
	var sums [2]uint64
	for i, m := range []map[uint64]uint64{got, want} {
		other := want
		what := "only in the tables"
		if i == 1 {
			other, what = got, "only in the walk"
		}
		for _, a := range slices.Sorted(maps.Keys(m)) {
			sums[i] += m[a]
			if other[a] != m[a] {
				lines = append(lines, fmt.Sprintf("%s: %d bytes at %#x", what, m[a], a))
			}
		}
	}
	if len(lines) > 6 {
		lines = append(lines[:6], fmt.Sprintf("and %d more", len(lines)-6))
	}
	return fmt.Sprintf("%d storages, %d bytes; the walk has %d, %d: %s", len(got), sums[0], len(want), sums[1],
		strings.Join(lines, "; "))
}
