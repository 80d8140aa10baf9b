package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// cautions say what else may have moved the figures of a pair.
func cautions(base, now *schemas.BaselineExperiment, o *Options) []string {
	var out []string
	if base.Source != now.Source {
		out = append(out, fmt.Sprintf("bytes that are %s beside a baseline that is %s", now.Source, base.Source))
	}
	if base.Source == schemas.Predicted && now.Source == schemas.Predicted && base.Confidence != now.Confidence &&
		base.Confidence != "" && now.Confidence != "" {
		out = append(out, fmt.Sprintf("the confidence differs: %s, baseline %s", now.Confidence, base.Confidence))
	}
	type fact struct {
		what         string
		base, now    *string
		onlyMeasured bool // of a prediction it says nothing
	}
	bothMeasured := base.Source == schemas.Measured && now.Source == schemas.Measured
	for _, f := range []fact{{"torch", base.Versions.Torch, now.Versions.Torch, false}, {"CUDA", base.Versions.CUDA,
		now.Versions.CUDA, false},
		{"Opacus", base.Versions.Opacus, now.Versions.Opacus, false}, {"GPU", base.Versions.GPU, now.Versions.GPU,
			false},
		{"driver", base.Versions.Driver, now.Versions.Driver, true}} {
		if f.base != nil && f.now != nil && *f.base != *f.now && (bothMeasured || !f.onlyMeasured) {
			out = append(out, fmt.Sprintf("%s differs: %s, baseline %s", f.what, *f.now, *f.base))
		}
	}
	if differ := differingParams(base.Params, now.Params, true); len(differ) > 0 {
		out = append(out, "compared though the parameters differ: "+strings.Join(differ, "; "))
	}
	if differ := identity.CommandsDiffer(base.Command, now.Command); differ != nil {
		out = append(out, "compared though the commands differ in their "+differ[0])
	}
	if base.Status == schemas.StatusOK && now.Status == schemas.StatusOK && base.StepMS != nil && now.StepMS != nil &&
		base.StepMS.Clock == now.StepMS.Clock {
		b, n := base.StepMS, now.StepMS
		i := slices.IndexFunc(o.Thresholds, func(t Threshold) bool { return t.Metric.Name == compare.MetricTime })
		if i >= 0 && o.Thresholds[i].exceeded(b.Median, n.Median, 0) && n.Low <= b.High {
			out = append(out, fmt.Sprintf("the spreads of the step times overlap: %.3g to %.3g ms, baseline %.3g to "+
				"%.3g ms", n.Low, n.High, b.Low, b.High))
		}
	}
	return out
}
