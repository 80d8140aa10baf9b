package report

import (
	"cmp"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
)

// FindingsSchema is the version of [FindingsDocument], and FindingsSchema1 the version of [FindingsDocument1].
const (
	FindingsSchema  = "dpsight.findings/2"
	FindingsSchema1 = "dpsight.findings/1"
)

// FindingsDocument is what "dpsight findings --format json" prints.
type FindingsDocument struct {
	Schema string        `json:"schema"`
	Runs   []FindingsRun `json:"runs"`
}

// FindingsRun has a run's findings in words. Findings that save most come first.
type FindingsRun struct {
	identity.Identity
	Findings  []Finding `json:"findings"`
	NotLooked []string  `json:"not_looked"`
	Warnings  []string  `json:"warnings"`
}

// A Finding is a [findings.Finding] in words.
type Finding struct {
	ID     string         `json:"id"`    // stable name of the finding; docs/findings.md has an anchor of that name
	Title  string         `json:"title"` // title of the finding, in one line
	Place  FindingPlace   `json:"place"`
	Holder *FindingHolder `json:"holder"` // null if no holder has a name
	Bytes  *int64         `json:"bytes"`
	MS     *float64       `json:"ms"`
	Share  *float64       `json:"share"`
	Of     string         `json:"of,omitempty"`
	// Sentence describes the finding at length, and can be pasted into a paper.
	Sentence string `json:"sentence"`
	// Edits lists the lines of the script to change, if they are known.
	Edits []FindingEdit `json:"edits,omitempty"`
	// Change says what to change, and is empty if nothing needs to be changed.
	Change string         `json:"change,omitempty"`
	Saving *FindingSaving `json:"saving"` // null if this run does not tell what a change saves
	// Confidence says how the saving was determined, see [findings.Confidence].
	Confidence findings.Confidence `json:"confidence"`
	Figures    []FindingFigure     `json:"figures"`
	// Growth describes how memory grows. Only findings about growth have it.
	Growth *FindingGrowth `json:"growth,omitempty"`
}

// FindingPlace says where, and at which moment, most of a finding's bytes were allocated.
type FindingPlace struct {
	Device *string        `json:"device"`
	Rank   *int32         `json:"rank"`
	At     *memory.Moment `json:"at"`
	// Phase and Module allocated more than half of the bytes. Phase is null if no phase did, and Module if no module
	// did.
	Phase  *string `json:"phase"`
	Module *string `json:"module"`
	// Line requested the largest part of the bytes, and is null if unknown.
	Line *FindingLine `json:"line"`
}

// FindingEdit is a line of the script to change.
type FindingEdit struct {
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Source string `json:"source"` // text of the line
}

// FindingHolder keeps more than half of a finding's bytes alive.
type FindingHolder struct {
	Path string `json:"path"` // path as the script names it
}

// FindingSaving says what a change would save, and under which condition.
type FindingSaving struct {
	Bytes      *int64   `json:"bytes"`
	MS         *float64 `json:"ms"`
	CostsMS    *float64 `json:"costs_ms,omitempty"`
	Of         string   `json:"of"` // the figure that Bytes are saved of: "peak_allocated" or "peak_reserved"
	Assumption string   `json:"assumption,omitempty"`
}

// FindingLine is a line of the script that requested bytes of a finding.
type FindingLine struct {
	File     string `json:"file"`
	Line     int64  `json:"line"`
	Function string `json:"function"`
	Source   string `json:"source,omitempty"` // text of the line, if its file is available
	Bytes    int64  `json:"bytes"`
}

// FindingFigure is one figure behind a finding. From names its source: a table, column, category, event or run.
type FindingFigure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "bytes", "ms", "count"
	From  string  `json:"from"`
}

// FindingsDocument1 is the document of [FindingsSchema1], which dpsight still prints on request.
type FindingsDocument1 struct {
	Schema string         `json:"schema"`
	Runs   []FindingsRun1 `json:"runs"`
}

// FindingsRun1 is a run in a [FindingsDocument1].
type FindingsRun1 struct {
	identity.Identity
	Findings  []Finding1 `json:"findings"`
	NotLooked []string   `json:"not_looked"`
	Warnings  []string   `json:"warnings"`
}

// Finding1 is a finding in a [FindingsDocument1].
type Finding1 struct {
	ID         string          `json:"id"`
	Device     *string         `json:"device"`
	Rank       *int32          `json:"rank"`
	At         *memory.Moment  `json:"at"`
	Bytes      *int64          `json:"bytes"`
	MS         *float64        `json:"ms"`
	Share      *float64        `json:"share"`
	Of         string          `json:"of,omitempty"`
	Line       *FindingLine    `json:"line"`
	Sentence   string          `json:"sentence"`
	Figures    []FindingFigure `json:"figures"`
	Change     string          `json:"change,omitempty"`
	SavesBytes *int64          `json:"saves_bytes"`
	SavesMS    *float64        `json:"saves_ms"`
	CostsMS    *float64        `json:"costs_ms,omitempty"`
	Assumption string          `json:"assumption,omitempty"`
	Growth     *FindingGrowth  `json:"growth,omitempty"`
}

// NewFindingsDocument puts findings into words.
func NewFindingsDocument(found findings.Found) FindingsDocument {
	doc := FindingsDocument{Schema: FindingsSchema, Runs: []FindingsRun{}}
	for i := range found.Runs {
		r := &found.Runs[i]
		told := FindingsRun{Identity: r.Identity, Findings: []Finding{}, NotLooked: notLookedList(r),
			Warnings: RunWords(r.Remarks)}
		for k := range r.Findings {
			told.Findings = append(told.Findings, newFinding(&r.Findings[k], &r.Identity))
		}
		doc.Runs = append(doc.Runs, told)
	}
	return doc
}

// newFindingsDocument1 puts findings into words for programs that read [FindingsSchema1].
func newFindingsDocument1(found findings.Found) FindingsDocument1 {
	doc := FindingsDocument1{Schema: FindingsSchema1, Runs: []FindingsRun1{}}
	for i := range found.Runs {
		r := &found.Runs[i]
		told := FindingsRun1{Identity: r.Identity, Findings: []Finding1{}, NotLooked: notLookedList(r),
			Warnings: RunWords(r.Remarks)}
		for k := range r.Findings {
			told.Findings = append(told.Findings, tellFindingOf(&r.Findings[k], &r.Identity).Finding1)
		}
		doc.Runs = append(doc.Runs, told)
	}
	return doc
}

func notLookedList(r *findings.Run) []string {
	out := []string{}
	for _, n := range r.NotLooked {
		out = append(out, notLookedWords(n))
	}
	return out
}

func newFinding(f *findings.Finding, id *identity.Identity) Finding {
	w := tellFindingOf(f, id)
	told := Finding{ID: f.ID, Title: w.Title, Bytes: f.Bytes, MS: f.MS, Share: f.Share, Of: f.Of, Sentence: w.Sentence,
		Change: w.Change, Confidence: f.Confidence, Figures: w.Figures, Growth: w.Growth,
		Place: FindingPlace{Device: f.Device, Rank: f.Rank, At: f.At, Line: w.Line}}
	if f.Phase != "" {
		told.Place.Phase = &f.Phase
	}
	if f.Module != nil {
		told.Place.Module = new(grouping.ModulePath(f.Module, 0))
	}
	if holder := cmp.Or(f.Holder, holders[f.ID]); holder != "" {
		told.Holder = &FindingHolder{holder}
	}
	for i := range f.Edits {
		told.Edits = append(told.Edits, FindingEdit{f.Edits[i].File, f.Edits[i].Number, f.Edits[i].Text})
	}
	if f.SavesBytes != nil || f.SavesMS != nil {
		told.Saving = &FindingSaving{Bytes: f.SavesBytes, MS: f.SavesMS, CostsMS: f.CostsMS, Of: savedOf(f),
			Assumption: w.Assumption}
	}
	return told
}

// savedOf returns the whole that saved bytes are compared with, which may not be the whole for the finding's own size.
func savedOf(f *findings.Finding) string {
	if f.OfReserved() {
		return findings.OfPeakReserved
	}
	return findings.OfPeakAllocated
}
