package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// FindingsSchema is the version of [FindingsDocument].
const FindingsSchema = "dpsight.findings/1"

// FindingsDocument is what "dpsight analyze findings --format json" prints.
type FindingsDocument struct {
	Schema string        `json:"schema"`
	Runs   []FindingsRun `json:"runs"`
}

// FindingsRun is a run's findings in words.
type FindingsRun struct {
	identity.Identity
	Findings  []Finding `json:"findings"`
	NotLooked []string  `json:"not_looked"`
	Warnings  []string  `json:"warnings"`
}

// A Finding is one of [findings.Finding] in words.
type Finding struct {
	ID     string         `json:"id"`
	Device *string        `json:"device"`
	Rank   *int32         `json:"rank"`
	At     *memory.Moment `json:"at"`
	Bytes  *int64         `json:"bytes"`
	MS     *float64       `json:"ms"`
	Share  *float64       `json:"share"`
	Of     string         `json:"of,omitempty"`
	// Line asked for the largest part of the bytes; null where none is known.
	Line *FindingLine `json:"line"`
	// Sentence says what was found. It can be pasted into a paper.
	Sentence string          `json:"sentence"`
	Figures  []FindingFigure `json:"figures"`
	// Change is what to change; empty where nothing is to be.
	Change     string   `json:"change,omitempty"`
	SavesBytes *int64   `json:"saves_bytes"`
	SavesMS    *float64 `json:"saves_ms"`
	CostsMS    *float64 `json:"costs_ms,omitempty"`
	// Assumption says under what condition it saves that.
	Assumption string `json:"assumption,omitempty"`
	// Growth is how memory grows, of the finding that says that it does.
	Growth *FindingGrowth `json:"growth,omitempty"`
}

// FindingLine is a line of the script that asked for bytes of a finding.
type FindingLine struct {
	File     string `json:"file"`
	Line     int64  `json:"line"`
	Function string `json:"function"`
	Source   string `json:"source,omitempty"` // what it says, where its file is at hand
	Bytes    int64  `json:"bytes"`
}

// FindingFigure is one figure of a finding. From says where it comes from: table, column, category, event, or a run.
type FindingFigure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "bytes", "ms", "count"
	From  string  `json:"from"`
}

// NewFindingsDocument puts what was found into words.
func NewFindingsDocument(found findings.Found) FindingsDocument {
	doc := FindingsDocument{Schema: FindingsSchema, Runs: []FindingsRun{}}
	for i := range found.Runs {
		r := &found.Runs[i]
		told := FindingsRun{Identity: r.Identity, Findings: []Finding{}, NotLooked: []string{}, Warnings: RunWords(r.Remarks)}
		for k := range r.Findings {
			told.Findings = append(told.Findings, tellFindingOf(&r.Findings[k], &r.Identity))
		}
		for _, n := range r.NotLooked {
			told.NotLooked = append(told.NotLooked, notLookedWords(n))
		}
		doc.Runs = append(doc.Runs, told)
	}
	return doc
}

// notLookedWords say what could not be looked at, and why.
func notLookedWords(n findings.NotLooked) string {
	switch n.What {
	case findings.Bytes:
		return "bytes: " + n.Why
	case findings.CachedBytes:
		return "cached bytes: the segments of the highest reserved are not all known"
	case findings.Times:
		return "times: " + n.Why + " runs have none"
	case findings.Anything:
		return "anything: the run has not been ingested"
	}
	panic(fmt.Sprintf("no words for what was not looked at: %d", n.What))
}

// findingWords put the findings into words, each by its own function.
var findingWords = map[string]func(*wording){
	findings.Growth:             wordsOf(growthWords),
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
	findings.Slack:              slackWords,
	findings.RuleOfThumb:        wordsOf(ruleOfThumbWords),
	findings.CheaperMethod:      wordsOf(cheaperMethodWords),
	findings.Throttled:          wordsOf(throttledWords),
	findings.OtherProcess:       wordsOf(otherProcessWords),
	findings.NotIsolated:        wordsOf(notIsolatedWords),
	findings.UnsteadySteps:      wordsOf(unsteadyWords),
	findings.RepeatsPeak:        wordsOf(repeatsPeakWords),
	findings.RepeatsTime:        wordsOf(repeatsTimeWords),
	findings.PhaseOnly:          wordsOf(phaseOnlyWords),
	findings.Unattributed:       wordsOf(unattributedWords),
	findings.AmbiguousTags:      wordsOf(ambiguousTagsWords),
	findings.NotConserved:       wordsOf(notConservedWords),
	findings.PeakNotBrokenDown:  wordsOf(notBrokenDownWords),
}

// wordsOf hands the words of one finding the facts that its check found.
func wordsOf[Facts any](words func(*wording, Facts)) func(*wording) {
	return func(w *wording) { words(w, w.found.Facts.(Facts)) }
}

// A wording is a finding that is being put into words.
type wording struct {
	Finding
	found *findings.Finding
	peak  string // what the highest recorded moment is called
	rest  string // of the change, what has nothing to do with other methods
}

// tellFindingOf tells a finding of a run. Its sentence can be read alone, and says that the run's peak is bounded.
func tellFindingOf(f *findings.Finding, id *identity.Identity) Finding {
	told := tellFinding(f)
	if f.Bytes == nil || !id.Bounded() || f.ID == findings.NotConserved {
		return told
	}
	if *id.PeakLowBytes == *id.PeakHighBytes {
		told.Sentence += " The recording is bounded: the peak is exact, other moments may be higher."
	} else {
		told.Sentence += fmt.Sprintf(" The recording is bounded: the peak is at least %s and at most %s.",
			units.MiB(*id.PeakLowBytes), units.MiB(*id.PeakHighBytes))
	}
	return told
}

func tellFinding(f *findings.Finding) Finding {
	w := wording{Finding: Finding{ID: f.ID, Device: f.Device, Rank: f.Rank, At: f.At, Bytes: f.Bytes, MS: f.MS,
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
		w.Sentence += " Doing without would save nothing: as much is allocated at another moment."
	}
	if f.SavesBytes == nil && f.SavesMS == nil {
		w.Assumption = ""
	}
	return w.Finding
}

// line adds the line of the script that asked for most.
func (w *wording) line(f *findings.Finding) {
	if f.Line == nil {
		return
	}
	l := f.Line.Line
	w.Finding.Line = &FindingLine{File: l.File, Line: l.Number, Function: l.Function, Source: l.Text, Bytes: f.Line.Bytes}
	source := ""
	if l.Text != "" {
		source = " (" + sourceCell(l.Text) + ")"
	}
	if f.ID == findings.OOM {
		w.say(" %s asked for it%s.", grouping.LineText(l), source)
		return
	}
	w.say(" %s asked for %s of it%s.", grouping.LineText(l), units.MiB(f.Line.Bytes), source)
}

// say adds to the sentence.
func (w *wording) say(format string, args ...any) { w.Sentence += fmt.Sprintf(format, args...) }

// bytes adds a figure.
func (w *wording) bytes(what string, n int64, from string) {
	w.Figures = append(w.Figures, FindingFigure{what, float64(n), "bytes", from})
}

func (w *wording) milliseconds(what string, ms float64, from string) {
	w.Figures = append(w.Figures, FindingFigure{what, ms, "ms", from})
}

func (w *wording) count(what string, n int, from string) {
	w.Figures = append(w.Figures, FindingFigure{what, float64(n), "count", from})
}

// event is the one of the highest recorded moment.
func (w *wording) event() int64 { return w.found.Highest.At.Event }

// of says where a category's figures at the highest recorded moment come from.
func (w *wording) of(c schemas.Category) string {
	return fmt.Sprintf("owners.parquet and allocations.parquet: category %s after event %d", c, w.event())
}

// peakFigure is what most findings are a share of.
func (w *wording) peakFigure() {
	what := "highest recorded allocated"
	if w.found.Highest.IsPeak {
		what = "peak allocated"
	}
	w.bytes(what, w.found.Highest.AllocatedBytes,
		fmt.Sprintf("allocations.parquet: block_bytes live after event %d", w.event()))
}

// share is that of what is allocated at the highest recorded moment.
func (w *wording) share(bytes int64) string {
	return prose.Share(float64(bytes), float64(w.found.Highest.AllocatedBytes))
}
