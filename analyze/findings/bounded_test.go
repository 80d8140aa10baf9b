package findings

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
)

// If repeats have bounded peaks, they differ only by the difference that is certain. If the bounds of the peaks
// overlap, there is no finding.
func TestRepeatsOfBoundedPeaks(t *testing.T) {
	run := func(id string, low, high int64) *analyze.Summary {
		s := &analyze.Summary{Identity: identity.Identity{RunID: id}, PeakBytes: &low}
		if high > 0 {
			s.PeakLowBytes, s.PeakHighBytes = &low, &high
		}
		return s
	}
	for _, c := range []struct {
		first, second *analyze.Summary
		bytes         int64 // 0 stands for no finding
		bounded       bool
	}{{run("a", 100, 0), run("b", 120, 0), 20, false}, {run("a", 100, 130), run("b", 120, 0), 0, false},
		{run("a", 100, 110), run("b", 120, 140), 10, true}, {run("a", 100, 100), run("b", 120, 120), 20, false}} {
		found := repeatsDisagree(c.first, []*analyze.Summary{c.first, c.second})
		if len(found) == 0 && c.bytes == 0 {
			continue
		}
		if len(found) != 1 || *found[0].Bytes != c.bytes || found[0].Facts.(RepeatsPeakFacts).Bounded != c.bounded {
			t.Errorf("want %d bytes, have %+v", c.bytes, found)
		}
	}
	own := newTrial([]*analyze.Summary{run("a", 100, 110)}, "", func(s *analyze.Summary) *int64 { return s.PeakBytes })
	other := newTrial([]*analyze.Summary{run("b", 80, 90)}, "", (*analyze.Summary).PeakAtMost)
	if own.PeakBytes != 100 || own.AtMost || other.PeakBytes != 90 || !other.AtMost {
		t.Errorf("the run %+v, another method %+v", own, other)
	}
}
