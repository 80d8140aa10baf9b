package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// otherClocks is printed if one of two runs has GPU times and the other has wall times.
const otherClocks = "GPU time cannot be compared with wall time: no difference is given"

// comparisonWords puts each remark into a sentence, and drops equal sentences.
func comparisonWords(remarks []compare.Remark) []string {
	out := []string{}
	for i := range remarks {
		out = include(out, comparisonWord(&remarks[i]))
	}
	return out
}

// comparisonWord puts a remark into a sentence.
func comparisonWord(r *compare.Remark) string {
	switch r.Kind {
	case compare.RemarkOfRun:
		return RunWords([]analyze.Remark{*r.Run})[0]
	case compare.RemarkOfBreakdown:
		return memoryWord(r.Breakdown)
	case compare.RemarkEnergyLent:
		return "energy comes from the bare run of the same experiment"
	case compare.RemarkPeaksDiffer:
		return fmt.Sprintf("the peaks of %d repeats differ: %s to %s; the breakdown is of the median one", r.N,
			units.MiB(r.Low), units.MiB(r.High))
	case compare.RemarkBadRepeats:
		var how []string
		for _, e := range r.Endings {
			how = append(how, fmt.Sprintf("%d %s", e.N, e.Status))
		}
		return fmt.Sprintf("%d of %d repeats did not end well (%s): figures are of the others", r.N, r.Of,
			strings.Join(how, ", "))
	case compare.RemarkClocks:
		return fmt.Sprintf("times and rates are of %d of %d repeats: the others were timed by another clock (%s)", r.N,
			r.Of, r.What)
	case compare.RemarkWallLeftOut:
		return "GPU time and wall time have no common median, so runs with only wall times are left out: " +
			strings.Join(r.Names, ", ")
	case compare.RemarkExperiments, compare.RemarkPooled, compare.RemarkCodeUnknown, compare.RemarkCode:
		return originWords(r)
	case compare.RemarkBoundedRatio:
		return fmt.Sprintf("its peak is %s to %s × the baseline's, %s to %s, since one of the two peaks is bounded",
			units.Fixed(r.Ratios[0], 3), units.Fixed(r.Ratios[1], 3), table.DeltaBytes(r.Low).Text+" MiB",
			table.DeltaBytes(r.High).Text+" MiB")
	case compare.RemarkEndedEarly:
		return "no overhead: it ended early, and is not compared"
	case compare.RemarkOtherWork:
		return "not compared: no other run here does the same work"
	case compare.RemarkIsBaseline:
		return "not compared: it is a baseline itself, but no other run here is compared with it"
	case compare.RemarkNoBaseline:
		return "not compared: no vanilla run here does the same work; name a run with --baseline"
	case compare.RemarkHeldByHooks:
		return heldWords(r.Held, "the baseline")
	case compare.RemarkTimes:
		return otherClocks
	}
	return unfairWords(r)
}

// unfairWords say why a run and its baseline cannot be compared directly.
func unfairWords(r *compare.Remark) string {
	switch r.Kind {
	case compare.RemarkArguments:
		return fmt.Sprintf("compared although the commands differ in their arguments: %s, baseline %s", r.Now, r.Baseline)
	case compare.RemarkSource:
		return fmt.Sprintf("the run is %s, the baseline %s", r.Now, r.Baseline)
	case compare.RemarkBare:
		which := "the run is bare, the baseline is not"
		if r.OfBaseline {
			which = "the baseline is bare, the run is not"
		}
		return which + ": only peak and time can be compared"
	case compare.RemarkBaseEnded:
		return fmt.Sprintf("the baseline ended early (%s)", r.Baseline)
	case compare.RemarkFact:
		return fmt.Sprintf("%s differs: %s, baseline %s", r.What, r.Now, r.Baseline)
	case compare.RemarkRules:
		return fmt.Sprintf("its categories are not comparable: the run has %s, the baseline %s; %s", rulesName(r.Rules[0]),
			rulesName(r.Rules[1]), sameRules)
	case compare.RemarkSettings:
		return r.What + " differ: " + settingWords(r)
	case compare.RemarkOneMethod:
		return "only one of the two names its method, so they may train different models or batches"
	case compare.RemarkNormOnly:
		if r.OfBaseline {
			return "the baseline (norm_only) computes only norms: it is not a DP-SGD step"
		}
		return "norm_only computes only norms: it does not clip, adds no noise and is not private, so its overhead is " +
			"not that of a DP-SGD step"
	case compare.RemarkPoisson:
		who, other := "the run", "the baseline"
		if r.OfBaseline {
			who, other = other, who
		}
		return fmt.Sprintf("Poisson sampling varies the batch size of %s but not of %s: its peak comes from the largest "+
			"batch, so part of the difference is not overhead of the method", who, other)
	case compare.RemarkThrottled:
		switch slowed, theirs := throttleWords(r.Throttled[0]), throttleWords(r.Throttled[1]); {
		case slowed != "" && theirs != "":
			return fmt.Sprintf("the GPU was slowed down in %s, the baseline's in %s", slowed, theirs)
		case slowed != "":
			return "the GPU was slowed down in " + slowed
		default:
			return "the baseline's GPU was slowed down in " + theirs
		}
	case compare.RemarkKept:
		return keptWords(r)
	}
	panic("no words for the remark " + string(r.Kind))
}

// keptWords say how the difference of two peaks changes because only one of the training loops keeps its gradients
// between steps.
func keptWords(r *compare.Remark) string {
	who := "the run keeps .grad between steps and the baseline frees it"
	if r.OfBaseline {
		who = "the baseline keeps .grad between steps and the run frees it"
	}
	if r.Freed == nil {
		return fmt.Sprintf("%s: up to %s of the difference comes from zero_grad, not from the method", who,
			units.MiB(r.High))
	}
	freed, kept := prose.SignedMiB(*r.Freed), prose.SignedMiB(*r.Kept)
	if freed == kept {
		return who + ", which hardly changes the peaks: they differ by " + kept + " either way"
	}
	return fmt.Sprintf("%s: if both freed it, the peaks would differ by %s and not by %s", who, freed, kept)
}

// settingWords lists the settings that differ, each as "key=ours (baseline theirs)".
func settingWords(r *compare.Remark) string {
	if r.Now != "" || r.Baseline != "" {
		return r.Now + ", baseline " + r.Baseline
	}
	var words []string
	for _, s := range r.Settings {
		words = append(words, fmt.Sprintf("%s=%s (baseline %s)", s.Key, s.Now, s.Baseline))
	}
	return strings.Join(words, ", ")
}

// heldWords state the bytes that hooks hold in place of autograd, compared with a baseline.
func heldWords(h *compare.HeldByHooks, baseline string) string {
	return fmt.Sprintf("activations are %s less than at %s's peak, and hook activations %s more: hooks hold tensors "+
		"that autograd does not. Together the two differ by %s", units.MiB(h.Activations), baseline,
		units.MiB(h.HookActivations), prose.SignedMiB(h.HookActivations-h.Activations))
}

// compareWarnings returns all warnings about a comparison.
func compareWarnings(doc *compare.Document) []string {
	out := []string{}
	if len(doc.Twins) > 0 {
		out = append(out, "left out bare runs whose full runs are shown: "+
			strings.Join(doc.Twins, ", "))
	}
	if len(doc.Mixed) > 0 {
		out = append(out, fmt.Sprintf("runs of one cell differ in %s: separate them with --rows or --cols",
			strings.Join(doc.Mixed, ", ")))
	}
	cells := compare.NewGrouped()
	for i := range doc.Said {
		s := &doc.Said[i]
		cells.Add(comparisonWord(&s.Remark), strings.Join(s.Place, " × "))
	}
	out = append(append(out, cells.Lines()...), unlikeWords(identity.UnlikeArguments(doc.Runs))...)
	for i := range doc.SaidOfBase {
		s := &doc.SaidOfBase[i]
		out = append(out, "baseline "+s.Place[0]+": "+comparisonWord(&s.Remark))
	}
	return out
}

// tellOverhead writes the warnings of each run and each cell.
func tellOverhead(doc compare.OverheadDocument) compare.OverheadDocument {
	doc.BaselineWarnings = comparisonWords(doc.BaselineRemarks)
	doc.Runs, doc.Cells = slices.Clone(doc.Runs), slices.Clone(doc.Cells)
	for i := range doc.Runs {
		doc.Runs[i].Warnings = comparisonWords(doc.Runs[i].Remarks)
	}
	for i := range doc.Cells {
		doc.Cells[i].Warnings = comparisonWords(doc.Cells[i].Remarks)
	}
	return doc
}

// tellStudy returns the study's document with its notes and the warnings of its runs.
func tellStudy(s *compare.Study) compare.StudyDocument {
	doc := s.Document()
	doc.Notes = append(doc.Notes, studyNotes(s)...)
	for i := range doc.Runs {
		doc.Runs[i].Warnings = runWarnings(&s.Runs[i])
	}
	doc.Breakdown, doc.Failed = tellBreakdowns(doc.Breakdown), tellFailed(doc.Failed)
	doc.Phases, doc.Cost = tellPhases(doc.Phases), tellCosts(doc.Cost)
	if doc.Overhead != nil {
		told := tellOverhead(*doc.Overhead)
		doc.Overhead = &told
	}
	return doc
}

// StudyWarnings returns the warnings of a study's documents on memory, phases and overhead. Each warning appears once,
// with the experiments that have it.
func StudyWarnings(s *compare.Study) []string {
	var notes runNotes
	say := func(label string, warnings []string) {
		for _, w := range warnings {
			notes.add(label, w)
		}
	}
	doc := tellStudy(s)
	if doc.Overhead != nil {
		for i := range doc.Overhead.Cells {
			say(doc.Overhead.Cells[i].Label, doc.Overhead.Cells[i].Warnings)
		}
		say("baseline "+overWhat(s), doc.Overhead.BaselineWarnings)
	}
	for i := range doc.Runs {
		say(doc.Runs[i].Name, doc.Runs[i].Warnings)
	}
	for i := range doc.Breakdown {
		r := &doc.Breakdown[i]
		say(r.Name, r.Warnings)
		for k := range r.Devices {
			say(r.Name, r.Devices[k].Warnings)
		}
	}
	for i := range doc.Phases {
		say(doc.Phases[i].Name, doc.Phases[i].Warnings)
	}
	return append(notes.all(), doc.Notes...)
}

// studyNotes returns the notes on a study.
func studyNotes(s *compare.Study) (notes []string) {
	if len(s.Twins) > 0 {
		notes = append(notes, "bare runs appear only in the table of costs: "+strings.Join(s.Twins, ", "))
	}
	ids := make([]identity.Identity, len(s.Cells))
	for i := range s.Cells {
		ids[i] = s.Cells[i].Identity
	}
	notes = append(notes, unlikeWords(identity.UnlikeArguments(ids))...)
	notes = append(notes, rulesOfStudy(s)...)
	if s.Uncompared != nil {
		notes = append(notes, "no overhead: "+OtherWork(s.Uncompared)+"; name a baseline with --baseline")
	}
	return notes
}

// OtherWork says why runs were not compared by default.
func OtherWork(w *compare.OtherWork) string {
	by := ""
	if w.Param != "" {
		by = w.Param + " "
	}
	return fmt.Sprintf("the runs are of different %s (%s%s and %s)", w.What, by, w.Now, w.Baseline)
}

// overWhat names the baseline that a study's cells are compared with.
func overWhat(s *compare.Study) string {
	switch {
	case s.Nearest:
		return "the baseline of the nearest parameters"
	case s.SeveralBaselines:
		return "the baseline of the same parameters"
	}
	return s.BaselineLabel
}

// metricTitles are the metrics' names for people. For a category or a phase, a name follows the title.
var metricTitles = map[string]string{compare.MetricPeak: "peak allocated", compare.MetricReserved: "peak reserved",
	compare.MetricDevice: "peak on the device", compare.MetricTime: "step time",
	compare.MetricSamples: "samples a second", compare.MetricTokens: "tokens a second",
	compare.MetricEnergy: "energy a sample", compare.MetricCategory: "at the peak", compare.MetricPhase: "time",
	compare.MetricPhasePeak: "peak allocated in"}

// metricName returns a metric's name for use in a sentence, without its unit.
func metricName(metric string) string {
	m, err := compare.ParseMetric(metric)
	if err != nil {
		return metric
	}
	title := metricTitles[m.Name]
	switch {
	case m.Name == compare.MetricCategory && m.Of == compare.EveryCategory:
		return "each category " + title
	case m.Name == compare.MetricCategory || m.Name == compare.MetricPhase:
		return m.Of + " " + title
	case m.Name == compare.MetricPhasePeak:
		return title + " " + m.Of
	}
	return title
}

// ended says in one line why a cell has no figures.
func ended(c *compare.Cell) string { return failure(&c.Identity, comparisonWords(c.Remarks)) }

// runWarnings returns the warnings about a single run.
func runWarnings(s *analyze.Summary) []string { return comparisonWords(compare.RemarksOf(s)) }

// throttleWords say in how many timed steps a GPU was slowed down, and why. throttleWords are empty if no step is known
// to be slowed down.
func throttleWords(t timing.Throttle) string {
	if t.Slowed == 0 {
		return ""
	}
	of := fmt.Sprintf("%d timed steps", t.Steps)
	if t.Sampled < t.Steps {
		of = fmt.Sprintf("%d timed steps that were sampled", t.Sampled)
	}
	return fmt.Sprintf("%d of %s (%s)", t.Slowed, of, strings.Join(schemas.ThrottleNames(t.Reasons), ", "))
}
