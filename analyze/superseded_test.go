package analyze

import (
	"slices"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

func TestSupersede(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var all []*schemas.Manifest
	var doc RunsDocument
	want := map[string]string{}
	add := func(id, by string, change func(*schemas.Manifest)) {
		start = start.Add(time.Minute)
		m := &schemas.Manifest{RunID: id, Name: "train", Source: schemas.Measured, Status: schemas.StatusOK,
			Start:   start,
			Command: []string{"python", "train.py"}, Params: map[string]any{"n": 1}}
		change(m)
		all = append(all, m)
		doc.Runs = append(doc.Runs, RunsRow{Identity: identity.Of((&schemas.Tables{Manifest: m}))})
		if by != "" {
			want[id] = by
		}
	}
	in := func(suite, key string, repetition int, status string) func(*schemas.Manifest) {
		return func(m *schemas.Manifest) {
			m.Suite, m.Status = &schemas.SuiteRef{ID: suite, Key: key, Repetition: repetition}, status
		}
	}
	h100 := "h100"
	add("old", "", func(*schemas.Manifest) {})
	add("arguments", "", func(m *schemas.Manifest) { m.Command = append(m.Command, "--epochs", "2") })
	add("param", "", func(m *schemas.Manifest) { m.Params = map[string]any{"n": 2} })
	add("name", "", func(m *schemas.Manifest) { m.Name = "other" })
	add("predicted", "", func(m *schemas.Manifest) { m.Source, m.Profile = schemas.Predicted, &h100 })
	add("bare", "", func(m *schemas.Manifest) { m.Bare = true })
	add("imported", "", func(m *schemas.Manifest) { m.Source = schemas.Imported })
	add("imported again", "", func(m *schemas.Manifest) { m.Source = schemas.Imported })
	add("between", "new", func(m *schemas.Manifest) { m.Status = schemas.StatusFailed })
	add("new", "", func(*schemas.Manifest) {})

	add("A0", "", in("A", "k", 0, schemas.StatusOK))
	add("A1", "B1", in("A", "k", 1, schemas.StatusKilled))
	add("B0", "", in("B", "k", 0, schemas.StatusOK))
	add("B0 again", "B0", in("B", "k", 0, schemas.StatusKilled))
	add("B1 first", "B1", in("B", "k", 1, schemas.StatusKilled))
	add("B1", "", in("B", "k", 1, schemas.StatusOK))
	add("C0", "", in("C", "another", 0, schemas.StatusOK))
	// A run of a suite is no newer version of an older run if it used a GPU with less memory, or other ranks.
	add("D0", "", in("D", "k", 0, schemas.StatusOK))
	all[len(all)-1].Params = map[string]any{"n": 1, "gpu_memory": int64(1 << 30)}
	add("told", "", func(m *schemas.Manifest) { m.Params = map[string]any{"n": 1, "world_size": 8} })
	// If a run fits on a larger card or on another kind of card, it may still not fit on the card on which it failed. A
	// driver may report a few MiB less for the same card.
	on := func(status, name string, mib int64) func(*schemas.Manifest) {
		return func(m *schemas.Manifest) {
			m.Name, m.Status = "card", status
			m.GPUs = []schemas.GPU{{Name: name, TotalBytes: mib << 20}}
		}
	}
	add("small", "", on(schemas.StatusOOM, "NVIDIA A100-SXM4-40GB", 40960))
	add("kind", "", on(schemas.StatusOOM, "NVIDIA H100 80GB HBM3", 81559))
	add("same card", "large", on(schemas.StatusOOM, "NVIDIA A100-SXM4-80GB", 81920))
	add("slice", "", on(schemas.StatusOOM, "NVIDIA A100-SXM4-80GB", 20096))
	add("large", "", on(schemas.StatusOK, "NVIDIA A100-SXM4-80GB", 81916))
	attached := func(status string) func(*schemas.Manifest) {
		return func(m *schemas.Manifest) { m.Name, m.Status, m.Attached = "serve", status, &schemas.Attached{} }
	}
	add("out of memory", "", attached(schemas.StatusOOM))
	add("asked for later", "", attached(schemas.StatusOK))
	doc.Supersede(all)
	// WithoutSuperseded leaves out a failed run that was rerun, even if the new run is not selected. WithoutSuperseded
	// keeps a failed run if the user names it.
	left := func(runs []*schemas.Manifest, named string) (ids []string) {
		kept := WithoutSuperseded(runs, func(m *schemas.Manifest) *schemas.Manifest { return m },
			func(m *schemas.Manifest) bool {
				return m.RunID == named
			},
			func() []*schemas.Manifest { return all })
		for _, m := range runs {
			if !slices.Contains(kept, m) {
				ids = append(ids, m.RunID)
			}
		}
		return ids
	}
	if got := left(all, ""); !slices.Equal(got, []string{"between", "A1", "B0 again", "B1 first", "same card"}) {
		t.Errorf("left out: %q", got)
	}
	if got := left(all[8:9], ""); !slices.Equal(got, []string{"between"}) {
		t.Errorf("left out of one: %q", got)
	}
	if got := left(all, "between"); !slices.Equal(got, []string{"A1", "B0 again", "B1 first", "same card"}) {
		t.Errorf("left out where one is named: %q", got)
	}
	for _, r := range doc.Runs {
		if by := r.SupersededBy; (by == nil) != (want[r.RunID] == "") || by != nil && *by != want[r.RunID] {
			t.Errorf("%s is superseded by %v, want %q", r.RunID, by, want[r.RunID])
		}
	}
}
