package analyze

import (
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// The tables that [SummarizeForComparison] needs: without energy, and with it.
const (
	ComparisonTables = schemas.WantTimes
	EnergyTables     = ComparisonTables | schemas.WantSamples
)

// SummarizeForComparison returns a summary for a run that other runs are only compared with. The summary has peaks and
// times, from manifest, report and steps. The summary also has energy if samples were loaded.
func SummarizeForComparison(in schemas.Tables) Summary {
	s := Summary{Identity: identity.Of(&in), Started: in.Manifest.Start,
		RunFacts: identity.FactsOf(in.Manifest)}
	if in.Manifest.Suite != nil {
		s.Suite, s.SuiteID, s.Key = in.Manifest.Suite.Name, in.Manifest.Suite.ID, in.Manifest.Suite.Key
	}
	s.peaks(&in)
	t := timing.Of(&in)
	s.StepMS, s.PhaseTimes = t.Step(), t.Phases(&in)
	if len(in.Samples) > 0 {
		s.JoulesPerStep, s.JoulesPerSample, s.NoEnergy = timing.Energy(&in, &t)
	}
	return s
}
