package analyze

// Outline is what other runs are compared with: peaks and times, from manifest, report and steps alone; and energy,
// where there are samples too.
func Outline(in Input) Summary {
	s := Summary{Identity: in.identity(), Started: in.Manifest.Start, Warnings: []string{}, facts: factsOf(in.Manifest)}
	if in.Manifest.Suite != nil {
		s.Suite, s.SuiteID, s.Key = in.Manifest.Suite.Name, in.Manifest.Suite.ID, in.Manifest.Suite.Key
	}
	s.peaks(&in)
	t := in.timed()
	s.StepMS, s.phaseTimes = t.step(), t.phases(&in)
	if len(in.Samples) > 0 {
		s.JoulesPerStep, s.JoulesPerSample, s.NoEnergy = in.energy(&t)
	}
	return s
}
