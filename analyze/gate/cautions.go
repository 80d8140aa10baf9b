package gate

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
)

// A Caution is another difference between an experiment's run and its baseline that may have changed the figures.
type Caution struct {
	Kind          CautionKind
	Differ        []Difference          // how the runs differ, except for [CautionParameters]
	Rules         [2]int                // versions of the rules, for [CautionRules], as in [Reason]
	Now, Baseline *schemas.BaselineTime // step times, for [CautionOverlap]
}

// A CautionKind is the kind of difference that a caution is about.
type CautionKind string

// The kinds of cautions.
const (
	CautionSource     CautionKind = "source" // for example, one is measured and the other predicted
	CautionConfidence CautionKind = "confidence"
	CautionVersion    CautionKind = "version"
	CautionParameters CautionKind = "parameters"
	CautionArguments  CautionKind = "arguments"
	CautionRules      CautionKind = "rules"   // different rules made the categories of the two, which are not compared
	CautionOverlap    CautionKind = "overlap" // the spreads of step times overlap, though the medians differ too much
	// CautionNormOnly: one side only computes norms and clips nothing, and the other side is another method. Differ is
	// empty.
	CautionNormOnly CautionKind = "norms"
)

// cautions returns the cautions about a baseline's experiment and its counterpart whose metrics were compared.
func cautions(base, now *schemas.BaselineExperiment, comparisons []Comparison) (out []Caution) {
	differs := func(kind CautionKind, what string, now, base *string) {
		if base != nil && now != nil && *base != *now {
			out = append(out, Caution{Kind: kind, Differ: []Difference{{what, now, base}}})
		}
	}
	differs(CautionSource, "source", &now.Source, &base.Source)
	if base.Source == schemas.Predicted && now.Source == schemas.Predicted && base.Confidence != "" &&
		now.Confidence != "" {
		differs(CautionConfidence, "confidence", &now.Confidence, &base.Confidence)
	}
	ours, theirs := &now.Versions, &base.Versions
	differs(CautionVersion, "torch", ours.Torch, theirs.Torch)
	differs(CautionVersion, "CUDA", ours.CUDA, theirs.CUDA)
	differs(CautionVersion, "Opacus", ours.Opacus, theirs.Opacus)
	differs(CautionVersion, "GPU", ours.GPU, theirs.GPU)
	if base.Source == schemas.Measured && now.Source == schemas.Measured { // the driver does not matter for predictions
		differs(CautionVersion, "driver", ours.Driver, theirs.Driver)
	}
	differs(CautionVersion, "revision", ours.Revision, theirs.Revision)
	if ours.Revision == nil || theirs.Revision == nil || *ours.Revision == *theirs.Revision { // unequal revisions imply it
		differs(CautionVersion, "code", ours.Code, theirs.Code)
	}
	differs(CautionVersion, "dpsight's agent", ours.Agent, theirs.Agent)
	if now.OtherRules(base) {
		out = append(out, Caution{Kind: CautionRules, Rules: [2]int{now.RulesVersion(), base.RulesVersion()}})
	}
	m, _ := base.Params["method"].(string)
	n, _ := now.Params["method"].(string)
	if m != "" && n != "" && m != n && (m == schemas.MethodNormOnly || n == schemas.MethodNormOnly) {
		out = append(out, Caution{Kind: CautionNormOnly})
	}
	if differ := differingParams(base.Params, now.Params, true); len(differ) > 0 {
		out = append(out, Caution{Kind: CautionParameters, Differ: differ})
	}
	if differ := differingArguments(base.Command, now.Command); len(differ) > 0 {
		out = append(out, Caution{Kind: CautionArguments, Differ: differ})
	}
	if base.Status == schemas.StatusOK && now.Status == schemas.StatusOK && base.StepMS != nil && now.StepMS != nil &&
		base.StepMS.Clock == now.StepMS.Clock {
		b, n := base.StepMS, now.StepMS
		slower := slices.ContainsFunc(comparisons, func(c Comparison) bool {
			return c.Metric == compare.MetricTime && c.Verdict == VerdictExceeded
		})
		if slower && n.Low <= b.High {
			out = append(out, Caution{Kind: CautionOverlap, Now: n, Baseline: b})
		}
	}
	return out
}
