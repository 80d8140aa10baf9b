package ingest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// What a file knows to be 0 is 0 in the tables, and what it does not know is absent.
func TestFiguresOfZero(t *testing.T) {
	begin := func(p *schemas.Phase) *int64 { return p.AllocatedBegin }
	gpu := func(p *schemas.Phase) *int64 { return p.GPUNS }
	for _, test := range []struct {
		file, phase string
		of          func(*schemas.Phase) *int64
		known       bool
	}{
		{"DPSGDTrainer_bs4_seq512.log", schemas.PhaseSetupModel, begin, true},
		{"results.json", schemas.PhaseSetupModel, begin, true},
		{"stages.json", schemas.PhaseSetupModel, begin, true},
		{"memory_profile_results.json", schemas.PhaseSetupModel, begin, true},
		{"vanilla_result.json", "warmup", begin, false},
		{"gpu.pt.trace.json", schemas.PhaseBetween, gpu, true},
		{"stages.json", schemas.PhaseForward, gpu, false},
	} {
		doc := ingestAll(t, t.TempDir(), Options{}, filepath.Join("figures", "testdata", test.file))
		if len(doc.Dirs) == 0 {
			t.Fatalf("%s: %+v", test.file, doc)
		}
		phases := rows(t, schemas.Phases, doc.Dirs[0])
		at := slices.IndexFunc(phases, func(p schemas.Phase) bool { return p.Phase == test.phase })
		if at < 0 {
			t.Fatalf("%s has no phase %s", test.file, test.phase)
		}
		if v := test.of(&phases[at]); (v != nil) != test.known || v != nil && *v != 0 {
			t.Errorf("%s, %s: %+v", test.file, test.phase, phases[at])
		}
	}
}
