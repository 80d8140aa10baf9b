package hostmemory_test

import (
	"math"
	"testing"

	"github.com/dpsight/dpsight/analyze/hostmemory"
	"github.com/dpsight/dpsight/schemas"
)

const mib = 1 << 20

// steps returns the tables of n steps. Each step has a forward of two stages and an update, and host memory is read
// after the forward and after the update. In each forward the process grows by grown bytes, and in each update it
// page-locks locked bytes.
func steps(n int, grown, locked int64) schemas.Tables {
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Name: "r"}, Report: &schemas.IngestReport{}}
	resident, pinned, k := int64(100*mib), int64(0), int64(1)
	read := func() {
		in.HostMarks = append(in.HostMarks, schemas.HostMark{K: k, TimeNS: k, RSSBytes: resident, PinnedBytes: new(pinned)})
	}
	read()
	phase := func(step int64, name string, marks int64) {
		in.Phases = append(in.Phases, schemas.Phase{Step: step, Phase: name, BeginK: k, EndK: k + marks})
		k += marks
	}
	for i := range int64(n) {
		phase(i, "forward", 3)
		phase(i, "forward", 2) // host memory is read only at the end of this second stage
		resident += grown
		read()
		phase(i, "optimizer", 1)
		pinned += locked
		read()
	}
	return in
}

func TestGrowthHasItsPhase(t *testing.T) {
	run, err := hostmemory.Of(steps(40, 2*mib, 3*mib))
	if err != nil || len(run.Ranks) != 1 || run.Ranks[0].Pinned == nil {
		t.Fatalf("%+v, %v", run, err)
	}
	for _, c := range []struct {
		memory *hostmemory.Memory
		phase  string
		step   int64
	}{{&run.Ranks[0].Resident, "forward", 2 * mib}, {run.Ranks[0].Pinned, "optimizer", 3 * mib}} {
		m := c.memory
		if m.GrowthBytes != 40*c.step || m.UnknownBytes != 0 || len(m.Phases) != 1 ||
			m.Phases[0] != (hostmemory.Phase{Phase: c.phase, Bytes: 40 * c.step, Steps: 40}) {
			t.Errorf("%s: %+v", c.phase, m)
		}
		if p := m.ExplainedPercent; p == nil || *p != 100 {
			t.Errorf("%s: explained %v", c.phase, p)
		}
		if m.Trend == nil || m.Trend.BytesPerStep != c.step {
			t.Errorf("%s: trend %+v", c.phase, m.Trend)
		}
	}
}

// If memory grows between two readings with several phases between them, the growth is of an unknown phase. The growth
// of all phases and the unknown growth sum to the whole growth.
func TestUnknownGrowth(t *testing.T) {
	in := steps(4, mib, 0)
	last := in.HostMarks[len(in.HostMarks)-1]
	for i, name := range []string{"forward", "backward"} { // host memory is read only at the end of this step
		in.Phases = append(in.Phases, schemas.Phase{Step: 4, Phase: name, BeginK: last.K + int64(i),
			EndK: last.K + int64(i) + 1})
	}
	in.HostMarks = append(in.HostMarks, schemas.HostMark{K: last.K + 2, TimeNS: 99, RSSBytes: last.RSSBytes + mib})
	run, err := hostmemory.Of(in)
	if err != nil {
		t.Fatal(err)
	}
	m := run.Ranks[0].Resident
	if m.GrowthBytes != 5*mib || m.UnknownBytes != mib || m.Phases[0].Bytes != 4*mib {
		t.Errorf("%+v", m)
	}
	if p := m.ExplainedPercent; p == nil || math.Abs(*p-80) > 1e-9 {
		t.Errorf("explained %v", p)
	}
	if p := run.Ranks[0].Pinned; p.GrowthBytes != 0 || p.ExplainedPercent != nil {
		t.Errorf("%+v", p)
	}
}

// If memory is allocated and freed again, or allocated only once, it has no trend.
func TestNoTrend(t *testing.T) {
	in := steps(40, 0, 0)
	for i := range in.HostMarks {
		in.HostMarks[i].RSSBytes += int64(i%2) * mib
		if i > 60 {
			in.HostMarks[i].RSSBytes += 50 * mib
		}
	}
	run, err := hostmemory.Of(in)
	if err != nil || run.Ranks[0].Resident.Trend != nil {
		t.Errorf("%+v, %v", run.Ranks[0].Resident.Trend, err)
	}
	if run, err = hostmemory.Of(schemas.Tables{Manifest: &schemas.Manifest{}}); err != nil || len(run.Ranks) != 0 ||
		!run.NotIngested || run.Tree != nil {
		t.Errorf("%+v, %v", run, err)
	}
}
