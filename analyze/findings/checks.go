package findings

import (
	"errors"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Checked is one run with those of its findings that need no comparison with other runs.
type Checked struct {
	Summary   analyze.Summary
	findings  []Finding
	notLooked []NotLooked
	lines     bool // lines of the script were recorded
}

// NotLooked is a part of a run that no check could examine, and why.
type NotLooked struct {
	What Unseen
	Why  string // for [Bytes] the reason, for [Times] the run's source
}

// Unseen is the part of a run that no check could examine.
type Unseen int

const (
	Anything    Unseen = iota // nothing was checked: the run has not been ingested
	Bytes                     // findings on bytes were not checked: there are no events
	CachedBytes               // findings on cached bytes were not checked: segments are unknown
	Times                     // findings on times were not checked: the run was not measured
)

// A check looks for one thing in a run that has the necessary data. Each check is in its own file, with its
// threshold.
type check struct {
	needs needs
	look  func(x *evidence) []Finding
}

// needs says which data a check needs.
type needs int

const (
	tables needs = iota // the finding needs only tables that any ingested run has
	blocks              // the finding needs allocator events
	times               // the finding needs times of a real device
)

// checks lists all checks that look at one run, grouped by what they need.
var checks = []check{
	{tables, (*evidence).failures},
	{tables, (*evidence).hostGrowth},
	{blocks, (*evidence).growth},
	{blocks, (*evidence).keptException},
	{blocks, (*evidence).keptViews},
	{blocks, (*evidence).earlierGraph},
	{blocks, (*evidence).retainedGraph},
	{blocks, (*evidence).wholeCheckpoint},
	{blocks, (*evidence).frozenActivations},
	{blocks, (*evidence).adapterDropout},
	{blocks, (*evidence).idleModels},
	{blocks, (*evidence).bucketCopies},
	{blocks, (*evidence).autocastCache},
	{blocks, (*evidence).previousValues},
	{blocks, (*evidence).scriptTensors},
	{blocks, (*evidence).untrainedGradients},
	{blocks, (*evidence).cached},
	{blocks, (*evidence).fragmented},
	{blocks, (*evidence).gradients},
	{blocks, (*evidence).sharedHooks},
	{blocks, (*evidence).ownHooks},
	{blocks, (*evidence).workspaces},
	{blocks, (*evidence).perSample},
	{blocks, (*evidence).perSampleEmbedding},
	{blocks, (*evidence).clipping},
	{blocks, (*evidence).outputs},
	{blocks, (*evidence).optimizer},
	{blocks, (*evidence).slack},
	{blocks, (*evidence).ruleOfThumb},
	{blocks, (*evidence).phaseOnly},
	{blocks, (*evidence).unattributed},
	{blocks, (*evidence).ambiguousTags},
	{blocks, (*evidence).notConserved},
	{blocks, (*evidence).notBrokenDown},
	{times, (*evidence).throttled},
	{times, (*evidence).otherProcess},
	{times, (*evidence).notIsolated},
	{times, (*evidence).unsteady},
}

// Tables lists the tables that the checks need.
const Tables = analyze.SummaryTables | schemas.WantDetail | schemas.WantHostMarks

// CheckRun runs all checks that need the tables of one run only.
func CheckRun(in schemas.Tables) Checked {
	ledgers := memory.NewLedgers(&in)
	n := Checked{Summary: analyze.SummarizeWith(&in, ledgers), lines: len(in.Lines) > 0}
	n.Summary.Timeline = nil // the timeline has nearly all of a summary's memory, and findings do not use it
	if in.Report == nil {
		n.notLooked = append(n.notLooked, NotLooked{What: Anything})
		return n
	}
	x := newEvidence(&in, &n.Summary, ledgers)
	defer func() {
		for i := range n.findings {
			n.findings[i].Edits = x.edits(&n.findings[i])
		}
	}()
	for need := tables; need <= times; need++ {
		if has, why := x.has(need); !has {
			n.notLooked = append(n.notLooked, why...)
			continue
		}
		for _, c := range checks {
			if c.needs == need {
				n.findings = append(n.findings, c.look(x)...)
			}
		}
		n.notLooked = append(n.notLooked, x.notLooked...)
		x.notLooked = nil
	}
	return n
}

// has reports whether the run has the data that a group of checks needs. Otherwise why lists what is not checked, and
// the reasons.
func (x *evidence) has(need needs) (has bool, why []NotLooked) {
	switch need {
	case blocks:
		var none *memory.NoEventsError
		if err := memory.NoEvents(x.in); errors.As(err, &none) {
			return false, []NotLooked{{Bytes, none.Reason.Error()}}
		}
		return x.d != nil, nil
	case times:
		if source := x.in.Manifest.Source; source != schemas.Measured {
			return false, []NotLooked{{Times, source}}
		}
	}
	return true, nil
}
