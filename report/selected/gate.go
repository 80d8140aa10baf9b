package selected

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// readBaseline reads a baseline document, or makes one from the runs with a name, except those that leave removes. If
// it makes one, it also returns the runs. what names the baseline in errors, and version is dpsight's.
func (s *Source) readBaseline(what, name, version string, leave leaver) (b *schemas.Baseline, of *Runs, err error) {
	if isFile(name) {
		b, err := schemas.ReadBaseline(name)
		if err != nil {
			return nil, nil, schemas.WithHint(fmt.Errorf("%s: %w", what, err),
				"dpsight check --write-baseline FILE writes one")
		}
		return b, nil, nil
	}
	if strings.HasSuffix(name, ".json") {
		return nil, nil, schemas.WithHint(fmt.Errorf("%s %s does not exist", what, name),
			"dpsight check --write-baseline FILE RUN… writes one from runs")
	}
	all := *s
	all.Where = "" // Where holds for the runs that are checked, not for the baseline's
	of, runs, err := all.Kept([]string{name}, leave)
	if err != nil {
		return nil, nil, err
	}
	newest := s.newest(runs)
	of.addPhases(newest)
	doc := gate.BaselineOf(newest, version)
	return &doc, of, nil
}

// readBaselines reads several baselines and merges them.
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

// Checked has the runs of a check and its result.
type Checked struct {
	Runs   []analyze.Summary // the newest run of each experiment
	Result *gate.Result      // result of the check; nil without a baseline
	of     *Runs
	from   *Source
	// acknowledged is the number of the baseline's acknowledgements.
	acknowledged int
}

// Check compares the newest runs of each experiment with the baseline that the options name, which is a file or
// runs.
func (s *Source) Check(names []string, version string, o gate.Options) (*Checked, error) {
	return s.CheckAnd(names, version, o, nil, schemas.Acknowledgement{})
}

// CheckAnd does what Check does, and first acknowledges exceeded metrics in the baseline's file; see
// [gate.Acknowledge].
func (s *Source) CheckAnd(names []string, version string, o gate.Options, acknowledge []string,
	as schemas.Acknowledgement) (*Checked, error) {
	var baseline *schemas.Baseline
	var beside *Runs
	var err error
	if o.Baseline != "" { // the baseline is read first, since trials of a search are checked if the baseline has them
		if baseline, beside, err = s.readBaseline("the baseline", cmp.Or(o.BaselineAt, o.Baseline), version,
			leaveTrials); err != nil {
			return nil, err
		}
		o.Pair = beside != nil
	}
	of, runs, err := s.Kept(names, leaveTrialsBut(baseline))
	if err != nil {
		return nil, err
	}
	c := &Checked{Runs: s.newest(runs), of: of, from: s}
	of.addPhases(c.Runs)
	if baseline == nil {
		return c, nil
	}
	if err := gate.CheckNames(o.Thresholds, *baseline, c.Runs); err != nil {
		return nil, schemas.WithHint(err, "dpsight runs lists the experiments, dpsight phases the phases")
	}
	result := gate.Check(*baseline, c.Runs, o)
	if len(acknowledge) > 0 {
		if err := s.acknowledge(baseline, &result, &o, acknowledge, as); err != nil {
			return nil, err
		}
		result = gate.Check(*baseline, c.Runs, o)
	}
	c.Result = &result
	for i := range baseline.Experiments {
		c.acknowledged += len(baseline.Experiments[i].Acknowledged)
	}
	c.locate(beside)
	return c, nil
}

// acknowledge writes acknowledgements into the baseline's file.
func (s *Source) acknowledge(b *schemas.Baseline, r *gate.Result, o *gate.Options, list []string,
	as schemas.Acknowledgement) error {
	if o.Pair || o.BaselineAt != "" && o.BaselineAt != o.Baseline {
		return schemas.WithHint(fmt.Errorf("%s is no file that --write-baseline wrote, so nothing can be acknowledged in it",
			o.Baseline), "dpsight check --write-baseline FILE RUN… writes one from runs")
	}
	if err := gate.Acknowledge(b, r, list, as, o.Today); err != nil {
		return schemas.WithHint(err,
			"as in --acknowledge peak@ghost --until 2026-12-31 --why 'the new clipping, fixed in the next release'")
	}
	if err := schemas.WriteBaseline(o.Baseline, b); err != nil {
		return schemas.WithHint(fmt.Errorf("writing the baseline: %w", err), "name a file that can be written")
	}
	s.Say("acknowledged in " + o.Baseline)
	return nil
}

// mostLocated is the most experiments for which a check says where memory grew, since it has to read the tables of
// their runs. A baseline file with more experiments has no places.
const mostLocated = 100

// locate finds where the memory of the regressed experiments grew.
func (c *Checked) locate(beside *Runs) {
	left := mostLocated
	for i := range c.Result.Experiments {
		x := &c.Result.Experiments[i]
		if x.State != gate.StateRegressed || x.OtherRules() || left == 0 {
			continue
		}
		left--
		was := x.BaselinePlaces
		if beside != nil {
			was = beside.places(x.BaselineRunID)
		}
		x.Locate(was, c.of.places(x.RunID))
	}
}

// places returns a run's peak by place in the code. places returns nil if the run's tables cannot be read, which does
// not change the verdict.
func (r *Runs) places(id string) []schemas.BaselinePlace {
	i := slices.IndexFunc(r.Runs, func(run store.Run) bool { return run.ID == id })
	if i < 0 {
		return nil
	}
	run, err := store.OpenRun(r.Runs[i].Dir) // the list of a store has only parts of manifests
	if err != nil {
		return nil
	}
	t, err := Read(run, gate.PlacesTables)
	if err != nil {
		return nil
	}
	return gate.PlacesOf(t)
}

// Baseline makes a baseline of the runs, with the places of their bytes.
func (c *Checked) Baseline(version string) schemas.Baseline {
	b := gate.BaselineOf(c.Runs, version)
	if c.acknowledged > 0 {
		c.from.Note(fmt.Sprintf("the new baseline has no acknowledgements: what %s let pass is in its figures",
			units.Plural(c.acknowledged, "acknowledgement", "acknowledgements")))
	}
	if len(b.Experiments) > mostLocated {
		return b
	}
	for i := range b.Experiments {
		if e := &b.Experiments[i]; e.Categories != nil {
			e.Places = c.of.places(e.RunID)
		}
	}
	return b
}

// Accuracy compares predictions with measurements. Each name is the name of a run or of a baseline file. Without names
// of predictions, Accuracy takes the predicted runs among all.
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

// isFile distinguishes a file's name from a run's name.
func isFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

// newest leaves out runs that later runs have replaced.
func (s *Source) newest(runs []analyze.Summary) []analyze.Summary {
	kept, left := gate.Newest(runs)
	notes := compare.NewGrouped()
	for _, l := range left {
		notes.Add(units.Plural(l.Runs, "older run is", "older runs are")+" left out: the newest of each experiment counts, "+
			"with its repeats of one suite, code and machine", l.Name)
	}
	for _, note := range notes.Lines() {
		s.Note(note)
	}
	return kept
}
