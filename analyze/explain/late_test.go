package explain

import (
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
	"strings"
	"testing"
)

// Kept gradients are explained where they stand at the peak, and only there.
func TestKeptGradientsAreExplained(t *testing.T) {
	from, to := NewInput(fixture.KeptRun(true)), NewInput(fixture.KeptRun(false))
	from.RunID = "fresh"
	told := func() string {
		doc, err := Explain(from, to)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(doc.Sentences, doc.Warnings...), " ")
	}
	if got := told(); !strings.Contains(got, ".grad") {
		t.Error(got)
	}
	to.Kept = &memory.KeptGradients{FreedPeakBytes: *to.PeakBytes}
	if got := told(); strings.Contains(got, ".grad") {
		t.Error(got)
	}
}

// Nothing is told of what is held at a peak that is not broken down.
func TestLatePeakIsNotExplained(t *testing.T) {
	in := fixture.LateInput(100)
	in.Owners = append(in.Owners, schemas.Owner{AllocID: 1, Category: schemas.HookActivations, BeginSeq: 1, EndSeq: 2,
		Evidence: schemas.Tagged})
	held := func(in schemas.Tables) string {
		doc, err := Explain(NewInput(in), NewInput(fixture.LateInput(100)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(doc.Sentences, "\n")
	}
	const hooks = "that DP hooks hold for backward"
	if text := held(in); !strings.Contains(text, hooks) {
		t.Errorf("%s", text)
	}
	in.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(150))
	if text := held(in); !strings.Contains(text, "there is no breakdown of the peak") || strings.Contains(text, hooks) {
		t.Errorf("%s", text)
	}
}
