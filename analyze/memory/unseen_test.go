package memory

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// dpsight says that a run has no failed request only if the recording would show failed requests.
func TestNoFailureIsSaidOfWhatNobodySaw(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*schemas.Tables)
		says   string
		looked bool
	}{
		"a whole journal": {func(*schemas.Tables) {}, "did not run out of memory", true},
		"a journal that ends early": {func(in *schemas.Tables) {
			in.Report.Ranks = []schemas.RankVerdict{{Complete: false}}
		}, "as far as its journal goes", true},
		"a trace": {func(in *schemas.Tables) {
			in.Manifest.Import, in.Report.Schema = &schemas.Import{Kind: schemas.ImportSnapshot}, schemas.IngestReportSchema
		}, "has no out-of-memory event", true},
		"a trace that an older version read": {func(in *schemas.Tables) {
			in.Manifest.Import, in.Report.Schema = &schemas.Import{Kind: schemas.ImportSnapshot}, "dpsight.ingested/1"
		}, "ingest --again", false},
	} {
		in := fixture.Hooked()
		c.change(&in)
		_, err := FindMoment(&in, identity.Place{}, At{OOM: new(int64(1))})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if n := FailedCount(&in); (n != nil) != c.looked || n != nil && *n != 0 {
			t.Errorf("%s: %v failures", name, n)
		}
	}
}

// An imported trace shows neither whether the script continued after a failed request, nor which limit the request
// exceeded.
func TestFailureOfATrace(t *testing.T) {
	in := fixture.Hooked()
	in.Report.OOMs = []schemas.OOM{{Seq: 4, RequestedBytes: 64 << 20, DeviceFreeBytes: 16 << 20, Step: -1,
		EndUnknown: true}}
	failed, _ := Failed(&in, NewLedgers(&in))
	if len(failed) != 1 || !failed[0].EndUnknown || failed[0].Fatal || failed[0].AllocatedBytes == nil ||
		failed[0].ShortOf() != 0 || failed[0].BesideTensors() != 0 {
		t.Fatalf("%+v", failed)
	}
}

// If dpsight does not know the actions of a trace's events, it does not claim that the program allocated nothing.
func TestEventsThatNobodyKnows(t *testing.T) {
	const why = "this dpsight does not know the actions of 3 of 4 events"
	const want = "run r has no allocator events: none that could be counted: " + why
	in := &schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Source: schemas.Imported, Status: schemas.StatusOK},
		Report: &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{Verdict: schemas.Lossy, Reason: why, Events: 4}}}}
	if err := NoEvents(in); err == nil || err.Error() != want {
		t.Error(err)
	}
	in.Report.Devices[0] = schemas.DeviceVerdict{Verdict: schemas.Exact}
	if err := NoEvents(in); err == nil || !strings.Contains(err.Error(), "it never allocated on a CUDA device") {
		t.Error(err)
	}
}
