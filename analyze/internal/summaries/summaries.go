package summaries

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/internal/fixture"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// SuiteRun is a run of an experiment of a suite, as slow as given, its peak made larger by extra bytes.
func SuiteRun(id, key string, params map[string]any, extra, ms int64) analyze.Summary {
	in := fixture.TimedRun(id, ms, ms+2, ms+1)
	in.Manifest.Name, in.Manifest.Params = key, params
	in.Manifest.Suite = &schemas.SuiteRef{Name: "s", Key: key}
	for i := range in.Allocations {
		if i == 0 {
			in.Allocations[i].BlockBytes += extra
		}
	}
	for i := range in.Report.Devices {
		in.Report.Devices[i].PeakAllocatedBytes += extra
	}
	return analyze.Summarize(in)
}

// Ran is a run of a method with so many bytes at its peak and these other parameters.
func Ran(id, method string, bytes int64, params ...any) analyze.Summary {
	in := fixture.Sized(method, map[schemas.Category]int64{schemas.Parameters: bytes / 2, schemas.Activations: bytes -
		bytes/2})
	in.Manifest.RunID = id
	in.Manifest.Params = map[string]any{"method": method}
	for i := 0; i < len(params); i += 2 {
		in.Manifest.Params[params[i].(string)] = params[i+1]
	}
	return analyze.Summarize(in)
}

// Private is the outline of a run of a method.
func Private(id, method string, peak int64, step float64) analyze.Summary {
	return analyze.Summary{Identity: identity.Identity{RunID: id, Name: method, Status: schemas.StatusOK,
		Source: schemas.Measured,
		Params: map[string]any{"method": method}}, PeakBytes: &peak,
		StepMS: &timing.Interval{Median: step, Low: step, High: step, Clock: timing.ClockGPU, N: 1},
		RunFacts: []identity.Fact{{What: "method", Value: method, Param: true},
			{What: "batch_size", Value: "8", Condition: true,
				Param: true}}}
}

// Scripted is a run of a script with these arguments, of so many bytes.
func Scripted(id string, bytes int64, params map[string]any, command ...string) analyze.Summary {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: bytes / 2,
		schemas.Activations: bytes - bytes/2})
	in.Manifest.RunID, in.Manifest.Params, in.Manifest.Command = id, params, command
	return analyze.Summarize(in)
}
