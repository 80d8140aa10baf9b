// Package hostmemory reports how much host memory a run took, resident and page-locked, and in which phases it grew.
//
// The agent reads the memory of its process at the marks between phases of instrumented steps, and when other steps
// begin. The growth between two readings belongs to the phase that contains both. If no single phase contains both, the
// growth is unknown growth. So the growth of all phases plus the unknown growth equals the growth of the process, to
// the byte.
package hostmemory

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// Tables lists the tables that this package needs.
const Tables = schemas.WantHost | schemas.WantHostMarks | schemas.WantTimes

// Schema is the version of [Document].
const Schema = "dpsight.host/1"

// Document is what "dpsight host --format json" prints.
type Document struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

// NewDocument makes the document of these runs.
func NewDocument(runs ...Run) Document {
	if runs == nil {
		runs = []Run{}
	}
	identity.Distinguish(runs, func(r *Run) *identity.Identity { return &r.Identity })
	return Document{Schema, runs}
}

// Run is one run's memory on the host.
type Run struct {
	identity.Identity
	// Tree is the resident memory of all processes of the run together, from the collector's samples; null if there are
	// no samples.
	Tree  *Curve    `json:"tree"`
	Ranks []Process `json:"ranks"` // the recorded processes, by rank
	// NotIngested is whether the run has no tables yet.
	NotIngested bool `json:"-"`
}

// Curve summarises memory over time: its first, last and highest reading.
type Curve struct {
	Readings     int64 `json:"readings"`
	FirstBytes   int64 `json:"first_bytes"`
	LastBytes    int64 `json:"last_bytes"`
	HighestBytes int64 `json:"highest_bytes"`
}

func (c *Curve) add(bytes int64) {
	if c.Readings == 0 {
		c.FirstBytes = bytes
	}
	c.Readings, c.LastBytes, c.HighestBytes = c.Readings+1, bytes, max(c.HighestBytes, bytes)
}

// Process is one recorded process.
type Process struct {
	Rank     int32   `json:"rank"`
	Resident Memory  `json:"resident"`
	Pinned   *Memory `json:"pinned"` // memory that torch page-locked; null if torch does not count it
}

// A Kind is a kind of memory on the host.
type Kind int

// The kinds.
const (
	Resident Kind = iota
	Pinned
)

// Memories returns the kinds of memory that are known for the process.
func (p *Process) Memories() iter.Seq2[Kind, *Memory] {
	return func(yield func(Kind, *Memory) bool) {
		if yield(Resident, &p.Resident) && p.Pinned != nil {
			yield(Pinned, p.Pinned)
		}
	}
}

// Memory is one kind of a process's memory, and the places where it grew.
type Memory struct {
	Curve
	GrowthBytes int64   `json:"growth_bytes"` // growth from the first reading to the last
	Phases      []Phase `json:"phases"`       // phases in which the memory changed, the largest growth first
	// UnknownBytes is the growth between readings that do not lie in one phase.
	UnknownBytes int64 `json:"unknown_bytes"`
	// ExplainedPercent is the part of the growth with a known phase; null if nothing grew.
	ExplainedPercent *float64 `json:"explained_percent"`
	// Trend is null if the memory does not grow from step to step.
	Trend *Trend `json:"trend"`
}

// Phase says by how much a kind of host memory grew in one phase.
type Phase struct {
	Phase string `json:"phase"`
	Bytes int64  `json:"bytes"`
	Steps int64  `json:"steps"` // number of steps in which the memory changed there; 1 for all time before the first step
}

// Trend is growth of host memory that continues to the end: memory grows in each quarter of the later half of the
// steps.
type Trend struct {
	Steps        int64 `json:"steps"` // number of steps in the later half
	BytesPerStep int64 `json:"bytes_per_step"`
}

// Of returns a run's host memory by process and phase.
func Of(in schemas.Tables) (Run, error) {
	run := Run{Identity: identity.Of(&in), Ranks: []Process{}, NotIngested: in.Report == nil}
	if len(in.Host) > 0 {
		run.Tree = new(Curve)
		for i := range in.Host {
			run.Tree.add(in.Host[i].RSSBytes)
		}
	}
	readings := map[int32][]schemas.HostMark{}
	for _, h := range in.HostMarks {
		readings[h.Rank] = append(readings[h.Rank], h)
	}
	for _, rank := range slices.Sorted(maps.Keys(readings)) {
		run.Ranks = append(run.Ranks, process(&in, rank, readings[rank]))
	}
	return run, nil
}

func process(in *schemas.Tables, rank int32, readings []schemas.HostMark) Process {
	slices.SortStableFunc(readings, func(a, b schemas.HostMark) int { return cmp.Compare(a.K, b.K) })
	phases := phasesOf(in, rank)
	p := Process{Rank: rank, Resident: memory(phases, readings, func(h *schemas.HostMark) *int64 { return &h.RSSBytes })}
	pinned := memory(phases, readings, func(h *schemas.HostMark) *int64 { return h.PinnedBytes })
	if pinned.Readings > 0 {
		p.Pinned = &pinned
	}
	return p
}

// phasesOf returns the phases of one rank, in the order of their beginnings. A rank's devices have the same phases, so
// phasesOf uses one device.
func phasesOf(in *schemas.Tables, rank int32) []schemas.Phase {
	var out []schemas.Phase
	seen := map[[2]int64]bool{}
	for _, p := range in.Phases {
		if key := [2]int64{p.BeginK, p.EndK}; p.Rank == rank && !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b schemas.Phase) int { return cmp.Compare(a.BeginK, b.BeginK) })
	return out
}

// A walk finds the phases of successive readings; it keeps its place in the list of phases.
type walk struct {
	phases []schemas.Phase
	at     int
}

// between returns the phase that two readings lie in, or nil if they lie in phases of different names. Several phases
// in a row may have the same name, as the stages of a forward pass have.
func (w *walk) between(begin, end int64) *schemas.Phase {
	for w.at < len(w.phases) && w.phases[w.at].EndK <= begin {
		w.at++
	}
	var in *schemas.Phase
	for i := w.at; i < len(w.phases) && w.phases[i].BeginK < end; i++ {
		p := &w.phases[i]
		if p.EndK <= begin {
			continue
		}
		if in != nil && in.Phase != p.Phase {
			return nil
		}
		in = p
	}
	return in
}

// memory computes the growth of one kind of memory, by phase, from all readings of a process.
func memory(phases []schemas.Phase, readings []schemas.HostMark, bytes func(*schemas.HostMark) *int64) Memory {
	m, along := Memory{Phases: []Phase{}}, walk{phases: phases}
	grown, last := map[string]*Phase{}, map[string]int64{}
	var steps []int64 // memory at each step's first reading
	var before *schemas.HostMark
	step := int64(-1)
	for i := range readings {
		at := &readings[i]
		now := bytes(at)
		if now == nil {
			continue
		}
		m.add(*now)
		if before != nil {
			delta := *now - *bytes(before)
			in := along.between(before.K, at.K)
			if in == nil {
				m.UnknownBytes += delta
			} else {
				if delta != 0 {
					g := grown[in.Phase]
					if g == nil {
						g = &Phase{Phase: in.Phase}
						grown[in.Phase] = g
					}
					g.Bytes += delta
					if s, ok := last[in.Phase]; !ok || s != in.Step {
						g.Steps, last[in.Phase] = g.Steps+1, in.Step
					}
				}
				if in.Step > step {
					step, steps = in.Step, append(steps, *now)
				}
			}
		}
		before = at
	}
	if m.GrowthBytes = m.LastBytes - m.FirstBytes; m.GrowthBytes > 0 {
		unknown := max(m.UnknownBytes, -m.UnknownBytes)
		m.ExplainedPercent = new(100 * (1 - float64(unknown)/float64(m.GrowthBytes)))
	}
	for _, g := range grown {
		if g.Bytes != 0 {
			m.Phases = append(m.Phases, *g)
		}
	}
	slices.SortFunc(m.Phases, func(a, b Phase) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Phase, b.Phase))
	})
	m.Trend = trend(steps)
	return m
}

// leastSteps is how many steps the later half of a run must have to show a trend.
const leastSteps = 8

// trend returns the growth of the later half of the steps, if it continues to the end.
func trend(steps []int64) *Trend {
	late := steps[len(steps)/2:]
	if len(late) < leastSteps {
		return nil
	}
	for quarter := range 4 {
		first, last := late[quarter*(len(late)-1)/4], late[(quarter+1)*(len(late)-1)/4]
		if last <= first {
			return nil
		}
	}
	n := int64(len(late) - 1)
	return &Trend{n, (late[n] - late[0]) / n}
}
