package analyze

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// A script that catches its failure and goes on with less has ended well, and does not fit: a search and a single prediction say the same.
func TestPredictSaysWhatWasSurvived(t *testing.T) {
	in := sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	in.Manifest.Source = schemas.Predicted
	if p := Predict(in); p.Fits == nil || !*p.Fits || p.Why != "" || len(in.survived()) != 0 {
		t.Errorf("%+v", p)
	}
	in.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, Step: 2}}
	p := Predict(in)
	if *p.Fits || p.CaughtOOMs != 1 || !strings.Contains(strings.Join(p.Warnings, "\n"), "a request for 1,024.00 MiB failed in step 2, and the script went on") {
		t.Errorf("fits %v, %d caught, warnings %q", *p.Fits, p.CaughtOOMs, p.Warnings)
	}
	if s := p.Sentence(); !strings.Contains(s, "does not fit on ") || !strings.HasSuffix(s, ": the script caught 1 request that failed for want of memory and went on") {
		t.Errorf("%q", s)
	}
	if fits, why := NewFitRun(in).Verdict(); *fits != *p.Fits || why != p.Why {
		t.Errorf("a search says %v, %q of what a prediction says %v, %q", *fits, why, *p.Fits, p.Why)
	}
	in.Manifest.Status, in.Manifest.Reason = schemas.StatusFailed, "ValueError"
	if p = Predict(in); p.Fits != nil || p.Why != "failed: ValueError" {
		t.Errorf("fits %v, %q", p.Fits, p.Why)
	}
	in.Manifest.Status, in.Report.OOMs[0].Fatal = schemas.StatusOOM, true
	if p = Predict(in); *p.Fits || p.Why != "" || p.CaughtOOMs != 0 {
		t.Errorf("fits %v, %q", *p.Fits, p.Why)
	}
}
