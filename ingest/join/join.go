package join

import (
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/stackrules"
	"github.com/dpsight/dpsight/schemas"
)

// Device is the input about one device of a rank. In a bare run, which has no events, Events and Replay are nil.
type Device struct {
	Device      int32
	Events      *schemas.EventColumns
	Replay      *replay.Result
	Checkpoints []schemas.Checkpoint
	// Survivors has, by address, the stacks of the blocks in the allocator's last list. Survivors are needed for blocks
	// that are older than the events. Survivors is nil if the list has no stacks.
	Survivors map[uint64]uint32
	// Meanings has the meanings of the stacks, by stack id, for recordings that have stacks instead of marks. Meanings
	// is nil if the recording has marks.
	Meanings []stackrules.Meaning
}

// Result has the owners, data types, lines and holders that the join found on one device. The methods of Result make
// the rows of the tables.
type Result struct {
	facts  *facts
	owners lists[owner] // owners of each allocation in order of precedence
	dtypes []dtype      // dtype of each allocation
	lines  []uint32     // line of each allocation; nil = no line is known
	// holders are the holders of allocations, in the order in which they were found.
	holders []holder

	AmbiguousTags       int64
	Ambiguous           []string // the first ambiguous tags, as text
	BareSteps           []schemas.BareStep
	InstrumentedPeakSeq *int64 // see [schemas.DeviceVerdict]
}

// Join finds the owners of the blocks on all devices of a rank. unbound is the number of tags whose address no traced
// block of any device had. unbound leaves out tags that were made while events were lost, since their blocks may have
// been allocated and freed without an event.
func Join(c *Context, devices []Device) (results []*Result, unbound int64) {
	known := make([]bool, len(c.tags)) // whether some device had a tag's address, by tag
	var losses []markRange
	for _, d := range devices {
		losses = append(losses, lossesOf(c, d.Checkpoints)...)
		if d.Events == nil || d.Replay == nil {
			results = append(results, &Result{facts: &facts{context: c, device: d}})
			continue
		}
		results = append(results, joinDevice(c, d, known))
	}
	for i := range c.tags {
		t := &c.tags[i]
		if !known[i] && !t.Untag && t.Address != 0 && t.Bytes > 0 && c.recordingAt(t.K) && !inRanges(losses, t.K) {
			unbound++
		}
	}
	return results, unbound
}

// joinDevice runs the passes of the join on one device, in order. Each pass uses the results of the passes before it.
func joinDevice(c *Context, d Device, known []bool) *Result {
	f := newFacts(c, d)
	graphs := findGraphs(f)
	bound := bindTags(f, known)
	matches, bareSteps := matchBareSteps(f)

	tagged := ownByTag(f, graphs, bound.tags, matches)
	workspaces := findWorkspaces(f, tagged, matches)
	prefetched := findPrefetched(f, bound.tags, tagged, matches)
	dtypes := findDTypes(f, bound.tags, matches, prefetched)
	lines := findLines(f, matches)
	bound.tags = lists[boundTag]{} // a long run has many bound tags, and no later pass needs them

	r := newRules(f, graphs, matches, workspaces)
	owners := applyRules(r, tagged)
	owners = ownLikeMatches(r, owners, prefetched)
	owners = ownByStack(f, owners)
	sortByPrecedence(owners)

	return &Result{facts: f, owners: owners, dtypes: dtypes, lines: lines, holders: findHolders(f, owners),
		AmbiguousTags: bound.ambiguous, Ambiguous: bound.listed, BareSteps: bareSteps,
		InstrumentedPeakSeq: instrumentedPeak(f)}
}

// StepAt returns the step in which an event lies, or -1 if it lies before the first step.
func (r *Result) StepAt(seq int64) int64 {
	if r.facts.marks == nil {
		return -1
	}
	for _, s := range r.facts.context.rank.Steps.Steps {
		if r.facts.marks.seqAt(s.BeginK) < seq && seq <= r.facts.marks.seqAt(s.EndK) {
			return s.Number
		}
	}
	return -1
}
