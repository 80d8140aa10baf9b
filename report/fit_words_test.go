package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
)

// wordsProbe returns a run of a search. fits says whether the run fits; nil stands for a run that ended in another way.
func wordsProbe(value int64, fits *bool, peak int64, level string) predict.FitRun {
	return predict.FitRun{Value: value, Run: predict.PredictionRun{Fits: fits,
		Identity:  identity.Identity{RunID: "run", Status: "ok"},
		PeakBytes: &peak, PeakReservedBytes: new(peak + 1),
		Confidence: &schemas.Confidence{Level: level}}}
}

// wordsCached returns a copy of the run with the given reserved bytes.
func wordsCached(r predict.FitRun, reserved int64) predict.FitRun {
	r.Run.PeakReservedBytes = &reserved
	return r
}

// wordsSpare returns a copy of the run that leaves the given bytes free.
func wordsSpare(r predict.FitRun, bytes int64) predict.FitRun {
	r.Run.SpareBytes = &bytes
	return r
}

// If a prediction fits but leaves less than the margin free, a warning says so. If it leaves more, there is no warning.
func TestTightPredictionIsSaid(t *testing.T) {
	for spare, warned := range map[int64]bool{49 << 20: true, 50 << 20: false} {
		doc := tellPredictions(predict.NewPredictionDocument(predict.PredictionRun{Fits: new(true),
			SpareBytes: &spare, MarginBytes: new(int64(50 << 20)), Confidence: &schemas.Confidence{
				Unchecked: []string{"workspaces"}}}))
		want := "it fits, but leaves only 49.00 MiB, less than the margin of 50.00 MiB (--margin). No prediction " +
			"was ever compared with such a device: a real one may need more"
		if got := doc.Runs[0].Warnings; slices.Contains(got, want) != warned || len(got) > 1 {
			t.Errorf("%d bytes to spare: %q", spare, got)
		}
	}
}

// The outcome of a search takes one line, and so does each special case, such as a stopped search.
func TestFitWords(t *testing.T) {
	v := predict.Vary{Name: "batch_size", Low: 1, High: 64, Step: 1}
	yes, no := new(true), new(false)
	for _, c := range []struct {
		what     string
		search   predict.FitSearch
		odd      []string
		sentence string
	}{
		{"a limit", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(64, no, 900, schemas.Close),
			wordsProbe(1, yes, 10, schemas.ExactExpected), wordsProbe(32, yes, 320, schemas.ExactExpected),
			wordsProbe(33, no, 800, schemas.Close)}},
			nil, "batch_size 32 is the largest seen to fit, 33 does not fit"},
		{"nothing", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, no, 10, schemas.Close)}},
			nil, "not even batch_size 1"},
		{"everything", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 10, schemas.Close),
			wordsProbe(64, yes, 640, schemas.ExactExpected)}},
			nil, "batch_size 64, the highest"},
		{"a hole below the highest", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 10, schemas.Close),
			wordsProbe(64, yes, 640, schemas.Close), wordsProbe(63, no, 700, schemas.Close),
			wordsProbe(32, yes, 320, schemas.Close)}},
			[]string{"batch_size 64 fits, though 63 does not"},
			"batch_size 64, the highest value asked for, fits, but some smaller ones do not"},
		{"all that the options allow", predict.FitSearch{Only: []int64{2, 3, 6},
			Runs: []predict.FitRun{wordsProbe(2, yes, 10, schemas.Close), wordsProbe(6, yes, 60, schemas.Close)}},
			nil, "batch_size 6, the highest"},
		{"nothing that the options allow", predict.FitSearch{Only: []int64{2, 3, 6},
			Runs: []predict.FitRun{wordsProbe(2, no, 10, schemas.Close)}},
			nil, "not even batch_size 2"},
		{"stopped", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 10, schemas.Close),
			wordsProbe(64, nil, 640, schemas.Indicative)}, Stopped: "interrupted"},
			nil, "stopped at batch_size 1, which fits: interrupted"},
		{"stopped at once", predict.FitSearch{Stopped: "it failed", Unanswered: true},
			nil, "before any value was known to fit: it failed"},
		{"a value that cannot be, beside the answer",
			predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 10, schemas.Close),
				wordsProbe(64, no, 640, schemas.Close), wordsProbe(32, yes, 320, schemas.Close),
				wordsProbe(33, no, 330, schemas.Close), wordsProbe(48, nil, 480, schemas.Close)}},
			nil, "batch_size 32 is the largest seen to fit, 33 does not fit"},
		{"a value that cannot be, below the highest",
			predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 10, schemas.Close),
				wordsProbe(64, yes, 640, schemas.Close), wordsProbe(63, nil, 630, schemas.Close)}},
			nil, "batch_size 64, the highest value asked for, fits"},
		{"a hole", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 10, schemas.Close),
			wordsProbe(8, no, 80, schemas.Close), wordsProbe(9, yes, 70, schemas.Close),
			wordsProbe(10, no, 90, schemas.Close)}},
			[]string{"batch_size 9 fits, though 8 does not"},
			"batch_size 9 is the largest seen to fit, 10 does not fit"},
		{"less for more", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 3<<20, schemas.Close),
			wordsProbe(2, yes, 2<<20, schemas.Close), wordsProbe(3, no, 0, schemas.Close)}},
			[]string{"batch_size 2 takes less than batch_size 1: 2.00 MiB allocated, not 3.00 MiB"},
			"batch_size 2 is the largest seen to fit"},
		{"less reserved for more", predict.FitSearch{Runs: []predict.FitRun{wordsProbe(1, yes, 1<<20, schemas.Close),
			wordsCached(wordsProbe(2, yes, 2<<20, schemas.Close), 9<<20), wordsProbe(64, yes, 3<<20, schemas.Close)}},
			[]string{"batch_size 64 takes less than batch_size 2: 3.00 MiB reserved, not 9.00 MiB"},
			"every value tried fits"},
		{"a margin", predict.FitSearch{MarginBytes: 2 << 20, Runs: []predict.FitRun{
			wordsSpare(wordsProbe(1, yes, 10, schemas.Close), 3<<20), wordsSpare(wordsProbe(2, yes, 20, schemas.Close),
				1<<20), wordsProbe(3, no, 30, schemas.Close)}},
			nil, "batch_size 2 is the largest seen to fit (1.00 MiB to spare), 3 does not fit; batch_size 1 is the " +
				"largest that leaves the margin of 2.00 MiB (3.00 MiB to spare)"},
		{"a margin that the largest leaves", predict.FitSearch{MarginBytes: 1 << 20, Runs: []predict.FitRun{
			wordsSpare(wordsProbe(1, yes, 10, schemas.Close), 3<<20), wordsProbe(2, no, 30, schemas.Close)}},
			nil, "batch_size 1 is the largest seen to fit (3.00 MiB to spare), 2 does not fit; it leaves the margin of " +
				"1.00 MiB"},
		{"a margin that nothing leaves", predict.FitSearch{MarginBytes: 4 << 20, Runs: []predict.FitRun{
			wordsSpare(wordsProbe(1, yes, 10, schemas.Close), 3<<20), wordsProbe(2, no, 30, schemas.Close)}},
			nil, "2 does not fit; no value tried leaves the margin of 4.00 MiB"},
	} {
		doc := tellFit(predict.Fit(v, []predict.FitSearch{c.search}))
		got := &doc.Cells[0]
		if s := fitSentence(got, &v); !strings.Contains(s, c.sentence) || !slices.Equal(got.Odd, append([]string{},
			c.odd...)) {
			t.Errorf("%s: %q, %q", c.what, s, got.Odd)
		}
		switch err := FitFailure(&doc); {
		case c.search.Stopped != "":
			if err == nil || !strings.HasSuffix(err.Error(), c.search.Stopped) ||
				strings.Contains(schemas.Hint(err), "correct your script") != c.search.Unanswered {
				t.Errorf("%s: %v", c.what, err)
			}
		case err != nil != (got.Outcome == predict.FitNone):
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
