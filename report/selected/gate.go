package selected

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// readBaseline reads a baseline document, or makes one of the runs that a name stands for, without those that leave
// takes out. what is how the reader calls it, version that of dpsight.
func (s *Source) readBaseline(what, name, version string, leave leaver) (b *schemas.Baseline, ofRuns bool, err error) {
	if isFile(name) {
		b, err := schemas.ReadBaseline(name)
		if err != nil {
			return nil, false, schemas.WithHint(fmt.Errorf("%s: %w", what, err),
				"dpsight check --write-baseline FILE writes one")
		}
		return b, false, nil
	}
	if strings.HasSuffix(name, ".json") {
		return nil, false, schemas.WithHint(fmt.Errorf("%s %s does not exist", what, name),
			"dpsight check --write-baseline FILE RUN… writes one from runs")
	}
	all := *s
	all.Where = "" // of the runs that are checked
	_, runs, err := all.Kept([]string{name}, leave)
	if err != nil {
		return nil, false, err
	}
	doc := gate.BaselineOf(s.newest(runs), version)
	return &doc, true, nil
}

// readBaselines reads several as one.
func (s *Source) readBaselines(what string, names []string, version string,
	leave leaver) (all schemas.Baseline, err error) {
	for _, name := range names {
		b, _, err := s.readBaseline(what, name, version, leave)
		if err != nil {
			return all, err
		}
		all.Experiments = append(all.Experiments, b.Experiments...)
	}
	return all, nil
}

// Check holds the newest runs of each experiment to the baseline that the options name, a file or runs; without one the
// result is nil.
func (s *Source) Check(names []string, version string, o gate.Options) ([]analyze.Summary,
	*gate.Result, error) {
	var baseline *schemas.Baseline
	var err error
	if o.Baseline != "" { // first: trials that it has are checked
		if baseline, o.Pair, err = s.readBaseline("the baseline", cmp.Or(o.BaselineAt, o.Baseline), version,
			leaveTrials); err != nil {
			return nil, nil, err
		}
	}
	_, runs, err := s.Kept(names, leaveTrialsBut(baseline))
	if err != nil {
		return nil, nil, err
	}
	runs = s.newest(runs)
	if baseline == nil {
		return runs, nil, nil
	}
	if err := gate.CheckNames(o.Thresholds, *baseline, runs); err != nil {
		return nil, nil, schemas.WithHint(err, "dpsight runs lists the experiments, dpsight analyze phases the phases")
	}
	result := gate.Check(*baseline, runs, o)
	return runs, &result, nil
}

// Accuracy holds predictions beside what was measured: files of baselines or runs. Without names of predictions it is
// the predicted ones among the runs.
func (s *Source) Accuracy(predicted, measured []string, version string) (doc predict.AccuracyDocument, err error) {
	if len(predicted) == 0 {
		_, runs, err := s.Summaries(measured, leaveNone)
		if err != nil {
			return doc, err
		}
		told := gate.BaselineOf(s.newest(predict.Predictions(runs)), version)
		return predict.Accuracy(told, runs, "the predicted runs"), nil
	}
	told, err := s.readBaselines("--predicted", predicted, version, leaveNone)
	if err != nil {
		return doc, err
	}
	var files, names []string
	for _, name := range measured {
		if isFile(name) {
			files = append(files, name)
		} else {
			names = append(names, name)
		}
	}
	held, err := s.readBaselines("what was measured", files, version, leaveNone)
	if err != nil {
		return doc, err
	}
	var passed []gate.Passed
	if len(names) > 0 || len(measured) == 0 {
		_, runs, err := s.Summaries(names, leaveNone)
		if err != nil {
			return doc, err
		}
		var made schemas.Baseline
		made, passed = predict.Measurements(told, runs)
		held.Experiments = append(held.Experiments, made.Experiments...)
	}
	doc = predict.AccuracyOf(told, held, strings.Join(predicted, ", "))
	doc.Passed = passed
	return doc, nil
}

// isFile tells a file from the name of a run.
func isFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

// newest leaves out what later runs have replaced.
func (s *Source) newest(runs []analyze.Summary) []analyze.Summary {
	kept, left := gate.Newest(runs)
	for _, l := range left {
		s.Note(fmt.Sprintf("%s: %s left out: the newest of each experiment counts, with its repeats of one suite, "+
			"code and machine",
			l.Name, units.Plural(l.Runs, "older run is", "older runs are")))
	}
	return kept
}
