package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// notLookedWords say which check of findings could not run, and why.
func notLookedWords(n findings.NotLooked) string {
	switch n.What {
	case findings.Bytes:
		return "bytes: " + n.Why
	case findings.CachedBytes:
		return "cached bytes: at the highest reserved, some segments are unknown"
	case findings.Times:
		return "times: " + n.Why + " runs have none"
	case findings.Anything:
		return "everything: the run has not been ingested"
	}
	panic(fmt.Sprintf("no words for what was not looked at: %d", n.What))
}

// findingWords has, for each kind of finding, the function that puts it into words.
var findingWords = map[string]func(*wording){
	findings.Growth:             wordsOf(growthWords),
	findings.EvaluationGraphs:   wordsOf(growthWords),
	findings.KeptGraphs:         wordsOf(growthWords),
	findings.GradientGraphs:     wordsOf(growthWords),
	findings.ViewKeepsBase:      viewWords,
	findings.KeptException:      wordsOf(keptExceptionWords),
	findings.RetainedGraph:      wordsOf(retainedGraphWords),
	findings.WholeCheckpoint:    wordsOf(wholeCheckpointWords),
	findings.FrozenActivations:  wordsOf(frozenActivationsWords),
	findings.AdapterDropout:     wordsOf(adapterDropoutWords),
	findings.EarlierGraph:       wordsOf(earlierGraphWords),
	findings.BucketCopies:       wordsOf(bucketCopiesWords),
	findings.AutocastCache:      wordsOf(autocastCacheWords),
	findings.IdleModels:         wordsOf(idleModelsWords),
	findings.PreviousValue:      wordsOf(previousValueWords),
	findings.ScriptTensors:      wordsOf(scriptTensorsWords),
	findings.UntrainedGradients: wordsOf(untrainedGradientsWords),
	findings.OOM:                wordsOf(oomWords),
	findings.Cached:             wordsOf(cachedWords),
	findings.Fragmentation:      wordsOf(fragmentationWords),
	findings.KeptGradients:      wordsOf(keptGradientsWords),
	findings.SharedHooks:        wordsOf(sharedHooksWords),
	findings.OwnHooks:           wordsOf(ownHooksWords),
	findings.StreamWorkspaces:   wordsOf(streamWorkspacesWords),
	findings.ThreadWorkspaces:   wordsOf(threadWorkspacesWords),
	findings.PerSample:          wordsOf(perSampleWords),
	findings.PerSampleEmbedding: wordsOf(perSampleEmbeddingWords),
	findings.ClipTemporaries:    wordsOf(clipTemporariesWords),
	findings.OutputCopies:       wordsOf(outputCopiesWords),
	findings.OptimizerPeak:      optimizerWords,
	findings.Slack:              wordsOf(slackWords),
	findings.RuleOfThumb:        wordsOf(ruleOfThumbWords),
	findings.CheaperMethod:      wordsOf(cheaperMethodWords),
	findings.Throttled:          wordsOf(throttledWords),
	findings.OtherProcess:       wordsOf(otherProcessWords),
	findings.NotIsolated:        wordsOf(notIsolatedWords),
	findings.UnsteadySteps:      wordsOf(unsteadyWords),
	findings.HostGrowth:         wordsOf(hostGrowthWords),
	findings.RepeatsPeak:        wordsOf(repeatsPeakWords),
	findings.RepeatsTime:        wordsOf(repeatsTimeWords),
	findings.PhaseOnly:          wordsOf(phaseOnlyWords),
	findings.Unattributed:       wordsOf(unattributedWords),
	findings.AmbiguousTags:      wordsOf(ambiguousTagsWords),
	findings.NotConserved:       wordsOf(notConservedWords),
	findings.PeakNotBrokenDown:  wordsOf(notBrokenDownWords),
}

// wordsOf calls words with the facts that the finding's check found.
func wordsOf[Facts any](words func(*wording, Facts)) func(*wording) {
	return func(w *wording) { words(w, w.found.Facts.(Facts)) }
}

// A wording is a finding that is being put into words.
type wording struct {
	Finding1
	Title string // the finding in one line
	found *findings.Finding
	peak  string // what the sentence calls the highest recorded moment
	rest  string // the part of the change that does not depend on other methods
	ahead string // the consequence of changing nothing; "" if unknown
}

// tellFindingOf describes a finding of a run in a sentence that can stand alone. The sentence says if the run's peak is
// bounded.
func tellFindingOf(f *findings.Finding, id *identity.Identity) wording {
	told := tellFinding(f)
	if f.Bytes == nil || !id.Bounded() || f.ID == findings.NotConserved {
		return told
	}
	if *id.PeakLowBytes == *id.PeakHighBytes {
		told.Sentence += " The recording is bounded: the peak is exact, other moments may be higher than shown."
	} else {
		told.Sentence += fmt.Sprintf(" The recording is bounded: the peak is at least %s and at most %s.",
			units.MiB(*id.PeakLowBytes), units.MiB(*id.PeakHighBytes))
	}
	return told
}

func tellFinding(f *findings.Finding) wording {
	w := wording{Finding1: Finding1{ID: f.ID, Device: f.Device, Rank: f.Rank, At: f.At, Bytes: f.Bytes, MS: f.MS,
		Share: f.Share, Of: f.Of, Figures: []FindingFigure{}, SavesBytes: f.SavesBytes, SavesMS: f.SavesMS,
		CostsMS: f.CostsMS}, found: f, peak: "the highest recorded moment"}
	if f.Highest.IsPeak {
		w.peak = "the peak"
	}
	findingWords[f.ID](&w)
	w.line(f)
	w.methods(f.Methods)
	if f.Idle && w.Change != "" {
		w.Change = ""
		w.Sentence += " Without this memory the peak would be the same: another moment allocates as much."
	}
	if f.SavesBytes == nil && f.SavesMS == nil {
		w.Assumption = ""
	}
	return w
}

// line adds the line of the script that requested most of the finding's bytes.
func (w *wording) line(f *findings.Finding) {
	if f.Line == nil {
		return
	}
	l := f.Line.Line
	w.Line = &FindingLine{File: l.File, Line: l.Number, Function: l.Function, Source: l.Text, Bytes: f.Line.Bytes}
	source := ""
	if l.Text != "" {
		source = " (" + sourceCell(l.Text) + ")"
	}
	if f.ID == findings.OOM {
		w.say(" %s requested it%s.", grouping.LineText(l), source)
		return
	}
	w.say(" %s allocated %s of it%s.", grouping.LineText(l), units.MiB(f.Line.Bytes), source)
}

// say appends to the sentence.
func (w *wording) say(format string, args ...any) { w.Sentence += fmt.Sprintf(format, args...) }

// bytes adds one of the figures behind the sentence.
func (w *wording) bytes(what string, n int64, from string) {
	w.Figures = append(w.Figures, FindingFigure{what, float64(n), "bytes", from})
}

func (w *wording) milliseconds(what string, ms float64, from string) {
	w.Figures = append(w.Figures, FindingFigure{what, ms, "ms", from})
}

func (w *wording) count(what string, n int, from string) {
	w.Figures = append(w.Figures, FindingFigure{what, float64(n), "count", from})
}

// event returns the event of the highest recorded moment.
func (w *wording) event() int64 { return w.found.Highest.At.Event }

// of names the source of a category's figures at the highest recorded moment.
func (w *wording) of(c schemas.Category) string {
	return fmt.Sprintf("owners.parquet and allocations.parquet: category %s after event %d", c, w.event())
}

// peakFigure adds the figure that most findings are a share of: the highest allocated.
func (w *wording) peakFigure() {
	what := "highest recorded allocated"
	if w.found.Highest.IsPeak {
		what = "peak allocated"
	}
	w.bytes(what, w.found.Highest.AllocatedBytes,
		fmt.Sprintf("allocations.parquet: block_bytes live after event %d", w.event()))
}

// share formats bytes as a share of the allocated bytes at the highest recorded moment.
func (w *wording) share(bytes int64) string {
	return prose.Share(float64(bytes), float64(w.found.Highest.AllocatedBytes))
}
