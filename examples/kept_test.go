package examples_test

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas/store"
)

// What the headline runs would take if the loop freed .grad. Both figures are, to the byte, what the same experiments reach
// on the phantom GPU with --zero-grad none: per-sample gradients then cost nothing at batch size 1, and ghost clipping
// costs the gradients that Opacus' own zero_grad keeps between its two passes.
func TestPeaksWithoutKeptGradients(t *testing.T) {
	runs, _, err := store.Open(headline).Runs()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"dpsgd": 63_666_013_696, "ghost": 68_353_366_528}
	for _, r := range runs {
		peak, ok := want[r.Manifest.Name]
		if !ok {
			continue
		}
		delete(want, r.Manifest.Name)
		tab, err := store.Load(r, store.WantAll)
		if err != nil {
			t.Fatal(err)
		}
		s := analyze.Summarize(analyze.Input(*tab))
		if s.Kept == nil || s.Kept.FreedPeakBytes != peak {
			t.Errorf("%s: without kept gradients %+v, want %d", r.Manifest.Name, s.Kept, peak)
		}
	}
	if len(want) > 0 {
		t.Errorf("no run of %v", want)
	}
}
