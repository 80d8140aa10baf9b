package analyze

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// If several processes used one GPU at the same time, their reserved memory is added up, because the GPU held the sum.
// If processes ran one after the other or on different GPUs, their reserved memory is not added up.
func TestReservedBesideOthers(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	other := in.Report.Devices[0]
	other.Rank = 1
	in.Report.Devices = append(in.Report.Devices, other)
	for i, bytes := range []int64{300 << 20, 200 << 20} {
		in.Report.Devices[i].PeakReservedBytes, in.Report.Devices[i].TorchPeakReservedBytes = bytes, new(bytes)
	}
	for name, c := range map[string]struct {
		uuid       string
		start, end int64
		want       int64
	}{
		"at once":           {"GPU-a", 15, 30, 500 << 20},
		"never seen to end": {"GPU-a", 15, 0, 500 << 20},
		"later":             {"GPU-a", 21, 30, 300 << 20},
		"elsewhere":         {"GPU-b", 15, 30, 300 << 20},
		"not known where":   {"", 15, 30, 300 << 20},
	} {
		in.Processes = []schemas.Process{{Rank: 0, UUID: "GPU-a", StartNS: 10, EndNS: 20},
			{Rank: 1, UUID: c.uuid, StartNS: c.start, EndNS: c.end}}
		s := Summarize(in)
		for kind, want := range map[RemarkKind]bool{RemarkOfFullest: c.uuid != "GPU-a", RemarkInTurn: name == "later"} {
			if said := slices.Contains(s.Remarks, Remark{Kind: kind, N: 2}); said != want {
				t.Errorf("%s: %+v", name, s.Remarks)
			}
		}
		if *s.PeakReservedBytes != c.want {
			t.Errorf("%s: %d reserved, want %d", name, *s.PeakReservedBytes, c.want)
		}
		together := c.want > 300<<20
		if said := slices.Contains(s.Remarks, Remark{Kind: RemarkSumReserved, N: 2}); said != together ||
			ListRun(in).ReservedTogether != together {
			t.Errorf("%s: %+v, %+v", name, s.Remarks, ListRun(in))
		}
	}
}
