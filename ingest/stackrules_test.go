package ingest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/stackrules"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// alike maps a category to the category with which stacks confuse it. Stacks cannot distinguish these two categories,
// since the same part of the program requests both.
var alike = map[schemas.Category]schemas.Category{
	schemas.HookActivations: schemas.Activations, schemas.Outputs: schemas.Activations,
	schemas.NormSamples: schemas.ClipTemporaries, schemas.SummedGradients: schemas.ClipTemporaries,
	schemas.Noise: schemas.ClipTemporaries, schemas.Buffers: schemas.Parameters,
	schemas.PerSampleGradients: schemas.ClipTemporaries,
}

// A recording with both stacks and tags shows how good the stack rules are. For at least nine tenths of the bytes
// allocated at the peak, stacks alone, as in an imported snapshot, must give the category that the tags show.
func TestStackRulesAgreeWithTags(t *testing.T) {
	runs, _ := filepath.Glob("../examples/stacks/*-*")
	if len(runs) == 0 {
		t.Fatal("no recordings with stacks")
	}
	for _, dir := range runs {
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		journals, err := spool.ReadDir(filepath.Join(dir, spool.Dir))
		if err != nil {
			t.Fatal(err)
		}
		j := journals[0]
		stacks := torchsnap.NewStacks()
		recs := read(j, stacks)
		devices, verdicts, err := replayDevices(j, recs, newReport(m, Options{}))
		if err != nil {
			t.Fatal(err)
		}
		peak := verdicts[0].PeakSeq
		proven, _ := join.Join(join.NewContext(rankOf(m, j, steps.Derive(j.Marks, j.Names))), devices)
		meanings, err := stackrules.Default.Meanings(stacks)
		if err != nil {
			t.Fatal(err)
		}
		devices[0].Meanings = meanings
		clear(devices[0].Events.Mark)
		told, _ := join.Join(join.NewContext(&join.Rank{Steps: steps.Derive(nil, nil), Untimed: true}), devices)
		want, got := categoriesAt(proven[0], peak), categoriesAt(told[0], peak)
		var right, known int64
		wrong := map[[2]schemas.Category]int64{}
		for id, w := range want {
			if w.category == schemas.Other || w.category == schemas.Workspace {
				continue
			}
			known += w.bytes
			if a, b := normal(w.category), normal(got[id].category); a == b {
				right += w.bytes
			} else {
				wrong[[2]schemas.Category{a, b}] += w.bytes
			}
		}
		t.Logf("%s: of %d B that tags tell at the peak stacks tell %d alike; else %v", m.Name, known, right, wrong)
		if right*10 < known*9 {
			t.Errorf("%s: %d of %d B", m.Name, right, known)
		}
	}
}

type categoryOf struct {
	category schemas.Category
	bytes    int64
}

// categoriesAt returns the category and the bytes of each allocation that is live just after an event, by the
// allocation's id.
func categoriesAt(j *join.Result, seq int64) map[int64]categoryOf {
	owners := map[int64][]schemas.Owner{}
	for o := range j.Owners() {
		owners[o.AllocID] = append(owners[o.AllocID], o)
	}
	out := map[int64]categoryOf{}
	for a := range j.Allocations() {
		if a.AllocSeq > seq || a.FreeRequestedSeq != 0 && a.FreeRequestedSeq <= seq {
			continue
		}
		c := categoryOf{schemas.Other, a.RequestedBytes}
		i := slices.IndexFunc(owners[a.AllocID], func(o schemas.Owner) bool { return o.HoldsAt(seq) })
		if i >= 0 {
			c.category = owners[a.AllocID][i].Category
		}
		out[a.AllocID] = c
	}
	return out
}

func normal(c schemas.Category) schemas.Category {
	if to, ok := alike[c]; ok {
		return to
	}
	return c
}
