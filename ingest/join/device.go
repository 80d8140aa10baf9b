package join

import (
	"slices"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// Device is one device of a rank. Without events (a bare run) Events and Replay are nil.
type Device struct {
	Device      int32
	Events      *schemas.EventColumns
	Replay      *replay.Result
	Checkpoints []schemas.Checkpoint
}

// Joined is what the join found on one device. Rows of the two large tables are made in batches: see
// [Joined.Allocations] and [Joined.Owners].
type Joined struct {
	ctx *Context
	dev Device

	gaps    []int64 // events that stand for a time in which nothing was recorded
	lost    []marks // those of them that came by chance, while other threads went on
	pos     []int32 // events before mark k
	last    []int32 // seq of the last event with own mark k; 0 = none
	births  []birth // by life
	owners  []owner // in order of life, then of precedence
	ownerAt []int32 // first owner of each life; one more at the end
	peak    int64   // event whose breakdown the run shows

	AmbiguousTags       int64
	Ambiguous           []string // the first of them
	BareSteps           []schemas.BareStep
	givenLater          []bool // by life: it is a batch that was made before the step that it is given to the model in
	boundTags           []bool // by tag: its address is known here
	InstrumentedPeakSeq *int64 // first event of the peak's height in an instrumented step or in set-up
}

// birth is where a life began.
type birth struct {
	span   int32
	module uint32
	dp     bool
	dtype  spool.DType // of the tags in the block; 0 = none says
	mixed  bool        // tags of several dtypes
}

// owner is one ownership, compactly.
type owner struct {
	life       int32
	category   categoryIndex
	evidence   uint8 // place in evidences
	observed   bool
	user       bool // a tag of the user's says it, of this life or of its twin
	name       uint32
	module     uint32
	begin, end int64 // end 0 = to the end of recording
}

const (
	tagged uint8 = iota
	lifetime
	byPhase
)

var evidences = [...]schemas.Evidence{schemas.Tagged, schemas.Lifetime, schemas.ByPhase}

// Join joins the devices of a rank. unbound is the number of tags of an address that no traced block of any device ever
// had.
func Join(c *Context, devices []Device) (joined []*Joined, unbound int64) {
	bound := make([]bool, len(c.tags))
	for _, d := range devices {
		j := &Joined{ctx: c, dev: d}
		joined = append(joined, j)
		if d.Events == nil || d.Replay == nil {
			continue
		}
		j.place()
		j.findBirths()
		j.findPeak()
		j.own(j.bind())
		for i, b := range j.boundTags {
			bound[i] = bound[i] || b
		}
		j.boundTags = nil
	}
	for i := range c.tags {
		if t := &c.tags[i]; !bound[i] && !t.Untag && t.Address != 0 && t.Bytes > 0 && c.recordingAt(t.K) {
			unbound++
		}
	}
	return joined, unbound
}

func (c *Context) recordingAt(k uint32) bool { return int(k) < len(c.recording) && c.recording[k] }

// mark is an event's own mark, or 0 if the journal has no such mark.
func (j *Joined) mark(i int) uint32 {
	if m := j.dev.Events.Mark[i]; int(m) < len(j.ctx.span) {
		return m
	}
	return 0
}

// place finds the place of every mark among the events.
func (j *Joined) place() {
	n := len(j.ctx.span)
	j.pos, j.last = make([]int32, n), make([]int32, n)
	next := uint32(0)
	for i := range j.dev.Events.Mark {
		m := j.mark(i)
		for ; next <= m; next++ {
			j.pos[next] = int32(i)
		}
		j.last[m] = int32(i + 1)
	}
	for ; int(next) < n; next++ {
		j.pos[next] = int32(j.dev.Events.Len())
	}
	j.pos[0] = 0
	for i, a := range j.dev.Events.Action {
		if a == schemas.ActionGap {
			j.gaps = append(j.gaps, int64(i)+1)
		}
	}
	for i, p := range j.dev.Checkpoints {
		if p.Reason == schemas.ReasonLost && i > 0 {
			j.lost = append(j.lost, marks{uint32(j.dev.Checkpoints[i-1].K), j.ctx.drainEnd(uint32(p.K))})
		}
	}
}

// marks are the numbers first to last.
type marks struct{ first, last uint32 }

// lostAt reports whether events were being lost at mark k: a block that lived then may have come and gone without one.
func (j *Joined) lostAt(k uint32) bool {
	return slices.ContainsFunc(j.lost, func(m marks) bool { return m.first <= k && k <= m.last })
}

// untraced reports whether no event tells of a life's birth: it lay before recording, or in a gap of it.
func (j *Joined) untraced(a *replay.Alloc) bool {
	return a.AllocSeq == 0 || j.dev.Events.Action[a.AllocSeq-1] == schemas.ActionGap
}

// seqAt is the last event before mark k; the state at mark k is the one just after it.
func (j *Joined) seqAt(k uint32) int64 {
	if int(k) >= len(j.pos) {
		return int64(j.dev.Events.Len())
	}
	return int64(j.pos[k])
}

// findBirths looks up where each life began.
func (j *Joined) findBirths() {
	c, lives := j.ctx, j.dev.Replay.Allocs
	j.births = make([]birth, len(lives))
	high, at := uint32(0), 0
	for l := range lives {
		seq := lives[l].AllocSeq
		for ; at < int(seq); at++ {
			high = max(high, j.mark(at))
		}
		if j.untraced(&lives[l]) {
			continue
		}
		own := j.mark(int(seq) - 1)
		b := birth{span: c.span[high]}
		spans := c.rank.Steps.Spans
		if own != 0 && spans[c.span[own]].Group == spans[b.span].Group {
			b.module, b.dp = c.module[own], c.dp[own]
		}
		j.births[l] = b
	}
}

// findPeak finds the event at which the run is broken down.
func (j *Joined) findPeak() {
	r := j.dev.Replay
	j.peak = r.PeakSeq
	spans := j.ctx.rank.Steps.Spans
	for i := range spans {
		if !j.ctx.instrumented(&spans[i]) {
			continue
		}
		from, to := j.seqAt(spans[i].BeginK), j.seqAt(spans[i].EndK)
		if i == 0 {
			from = -1
		}
		if i == len(spans)-1 {
			to = r.Events
		}
		if to <= from { // no event of its own
			continue
		}
		if bytes, seq := r.PeakBetween(from+1, to); bytes == r.PeakAllocated {
			j.InstrumentedPeakSeq, j.peak = &seq, seq
			return
		}
	}
}

// StepAt is the step that an event lies in, or -1.
func (j *Joined) StepAt(seq int64) int64 {
	if j.dev.Events == nil {
		return -1
	}
	for _, s := range j.ctx.rank.Steps.Steps {
		if j.seqAt(s.BeginK) < seq && seq <= j.seqAt(s.EndK) {
			return s.Number
		}
	}
	return -1
}
