package analyze

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// A script that catches its failure and goes on with less has ended well; that what it was to do fits is not said without a word.
func TestPredictSaysWhatWasSurvived(t *testing.T) {
	in := sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	in.Manifest.Source = schemas.Predicted
	if p := Predict(in); p.Fits == nil || !*p.Fits || len(in.survived()) != 0 {
		t.Errorf("%+v", p)
	}
	in.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, Step: 2}}
	p := Predict(in)
	if !*p.Fits || !strings.Contains(strings.Join(p.Warnings, "\n"), "a request for 1,024.00 MiB failed in step 2, and the script went on") {
		t.Errorf("fits %v, warnings %q", *p.Fits, p.Warnings)
	}
}
