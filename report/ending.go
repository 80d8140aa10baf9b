package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// An Ending is what dpsight prints about a run that has ended.
type Ending struct {
	Run   *analyze.Summary
	Found *findings.Run
	// Prediction says whether a predicted run fits, and is nil for a measured run.
	Prediction *predict.PredictionRun
	Dir        string
}

const (
	endingCategories = 5
	endingFindings   = 2
	endingPercent    = 0.1 // share of the peak from which on a category is named
)

// EndingTable answers in about ten lines: the peak and its moment, which categories hold it, how these are known, how
// long a step takes, what to change first, and where to find more.
func EndingTable(e Ending) table.Table {
	s := e.Run
	b := table.Block{Title: identified(&s.Identity)}
	part := func(label, text string) {
		if text != "" {
			b.Parts = append(b.Parts, table.Part{Label: label, Text: text})
		}
	}
	part("peak", endingPeak(s))
	part("fits", endingFits(e.Prediction))
	if d := s.Main(); d != nil {
		part("holds", endingHolds(d))
		part("known", endingKnown(d))
	}
	part("time", endingTime(s))
	if s.Confidence != "" {
		text := s.Confidence
		if s.Confidence != schemas.ExactExpected && len(s.ConfidenceReasons) > 0 {
			text += ": " + s.ConfidenceReasons[0]
			if more := len(s.ConfidenceReasons) - 1; more > 0 {
				text += "; " + units.Plural(more, "more reason", "more reasons")
			}
		}
		part("sure", text)
	}
	shown := 0
	for i := range e.Found.Findings {
		f := &e.Found.Findings[i]
		if told := tellFindingOf(f, &s.Identity); told.Change != "" && shown < endingFindings {
			shown++
			part(fmt.Sprintf("%d.", shown), endingFinding(f, &told))
		}
	}
	if shown == 0 && s.Main() != nil {
		part("change", "nothing that is looked for is above its threshold")
	}
	part("more", "dpsight findings, breakdown or report -o FOLDER of "+filepath.ToSlash(e.Dir)+"; -v prints all tables")
	t := table.Table{Blocks: []table.Block{b}}
	if e.Prediction != nil {
		t.Notes = tellPredictions(predict.NewPredictionDocument(*e.Prediction)).Runs[0].Warnings
	}
	return t
}

// UnusedGPU returns a note and a hint for a run that ended well but allocated nothing on a GPU. unheard is the number
// of its processes that loaded torch and were not recorded.
func UnusedGPU(unheard int) (note, hint string) {
	note = "the script used no GPU, so dpsight recorded no memory"
	if unheard > 0 {
		note = "dpsight recorded no GPU memory: " + units.Plural(unheard, "process", "processes") + withoutAgent
	}
	return note, useGPU
}

// useGPU tells the user to put the model on the GPU.
const useGPU = "put the model and its inputs on the GPU, as with model.cuda(); did you forget an option such as " +
	"--device cuda?"

// endingPeak states the peak, and when it was reached.
func endingPeak(s *analyze.Summary) string {
	if s.PeakBytes == nil {
		return "not known: " + strings.Join(RunWords(s.Remarks), "; ")
	}
	text := units.MiB(*s.PeakBytes) + " allocated"
	if s.Bounded() {
		text = boundedPeak(*s.PeakLowBytes, *s.PeakHighBytes)
	}
	switch d := s.Main(); {
	case d == nil:
	case s.BrokenDown():
		text += " " + when(&d.At)
	default:
		text += fmt.Sprintf(", in a step that was not recorded; what follows is of %s %s", units.MiB(d.AllocatedBytes),
			when(&d.At))
	}
	if s.PeakReservedBytes != nil && *s.PeakReservedBytes > 0 {
		text += "; " + units.MiB(*s.PeakReservedBytes) + " reserved at most"
	}
	return text
}

// endingFits says whether a predicted run fits, and is empty for a measured run.
func endingFits(p *predict.PredictionRun) string {
	switch {
	case p == nil:
		return ""
	case p.Fits == nil || !*p.Fits || p.Because.Cause != "" || p.SpareBytes == nil:
		return predictionSentence(p)
	}
	return fmt.Sprintf("yes: %s keeps %s free", p.GPU, units.MiB(*p.SpareBytes))
}

// endingHolds lists the largest categories of the peak.
func endingHolds(d *memory.DeviceBreakdown) string {
	largest := slices.Clone(d.Categories)
	slices.SortStableFunc(largest, func(a, b memory.CategoryBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var parts []string
	rest := d.AllocatedBytes
	for _, c := range largest[:min(len(largest), endingCategories)] {
		if memory.AtLeast(c.Bytes, d.AllocatedBytes, endingPercent) {
			parts = append(parts, fmt.Sprintf("%s %s (%s)", prose.Words(c.Category), table.Size(c.Bytes),
				prose.Share(float64(c.Bytes), float64(d.AllocatedBytes))))
			rest -= c.Bytes
		}
	}
	if rest > 0 {
		parts = append(parts, "others "+table.Size(rest))
	}
	return strings.Join(parts, ", ")
}

// endingKnown says how the categories are known, and whether replay was proved correct.
func endingKnown(d *memory.DeviceBreakdown) string {
	var known memory.Evidence
	var unowned int64
	for _, c := range d.Categories {
		if c.Category == schemas.Other || c.Category == schemas.Untraced {
			unowned += c.Bytes
			continue
		}
		known.TaggedBytes += c.TaggedBytes
		known.LifetimeBytes += c.LifetimeBytes
		known.StackBytes += c.StackBytes
		known.PhaseOnlyBytes += c.PhaseOnlyBytes
	}
	var parts []string
	for _, p := range []struct {
		bytes int64
		by    string
	}{{known.TaggedBytes, "by tag"}, {known.LifetimeBytes, "by lifetime"}, {known.StackBytes, "by stack"},
		{known.PhaseOnlyBytes, "by phase only"}, {unowned, "not known"}} {
		if p.bytes > 0 {
			parts = append(parts, prose.Share(float64(p.bytes), float64(d.AllocatedBytes))+" "+p.by)
		}
	}
	text := strings.Join(parts, ", ")
	if d.Conservation.Verdict == schemas.Exact {
		return text + "; the replay equals torch's counters"
	}
	return text + "; the replay is " + d.Conservation.Verdict
}

// endingTime says how long a step takes.
func endingTime(s *analyze.Summary) string {
	switch {
	case s.StepMS != nil:
		return fmt.Sprintf("%s a step (%s to %s in %s)", prose.MS(s.StepMS.Median), prose.MS(s.StepMS.Low),
			prose.MS(s.StepMS.High), units.Plural(s.StepMS.N, "step", "steps"))
	case s.Source == schemas.Predicted:
		return "none: nothing is computed on a phantom GPU"
	}
	return "none: no step was timed"
}

// endingFinding describes a finding with its line and its saving.
func endingFinding(f *findings.Finding, told *wording) string {
	text := fmt.Sprintf("%s [%s]", told.Title, f.ID)
	switch {
	case len(f.Edits) > 0:
		text += ", edit " + grouping.LineText(&f.Edits[0])
	case f.Line != nil:
		text += ", allocated at " + grouping.LineText(f.Line.Line)
	}
	if f.SavesBytes != nil || f.SavesMS != nil {
		text += "; a change saves "
		if f.Confidence == findings.AtMost || f.Confidence == findings.AtLeast {
			text += confidenceOf[f.Confidence] + " "
		}
		text += savingWords(f)
	}
	return text
}
