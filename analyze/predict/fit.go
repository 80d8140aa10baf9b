package predict

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// FitSchema is the version of [FitDocument].
const FitSchema = "dpsight.fit/1"

// FitDocument is what "dpsight predict --vary … --format json" prints: the largest value that fits, for each method
// and device.
type FitDocument struct {
	Schema string    `json:"schema"`
	Vary   Vary      `json:"vary"`
	Cells  []FitCell `json:"cells"`
}

// Vary is the parameter whose values were tried.
type Vary struct {
	Name string `json:"name"`
	Low  int64  `json:"low"`
	High int64  `json:"high"`
	Step int64  `json:"step"`
}

// FitSearch has the probes of a search for one method on one device.
type FitSearch struct {
	Method      string // the method, or else the script's name
	Profile     string
	GPU         string
	MemoryBytes int64
	MarginBytes int64 // bytes of MemoryBytes that should stay free; 0 = no margin was requested
	// Only lists the allowed values in ascending order if the options do not allow the whole range. Barred says why
	// other values are not allowed.
	Only    []int64
	Barred  string
	Top     bool // the options allow no value above the range's highest
	Runs    []FitRun
	Stopped string // why the search ended early; empty if it did not
	// Unanswered is true if the search ended early since a run ended for a reason other than memory.
	Unanswered bool
}

// FitRun is one probe of a search.
type FitRun struct {
	Value int64
	Kept  bool // the store had the prediction before
	Run   PredictionRun
}

// NewFitRun reduces the run of a probe. NewFitRun needs all tables, with detail. A run fits only if none of its
// requests failed: a script that caught a failed request went on with less memory. A request that failed at a limit set
// by the script does not count, since it says nothing about the device.
func NewFitRun(in schemas.Tables) FitRun {
	r := FitRun{Run: Predict(in)}
	if p := &r.Run; p.Fits != nil && *p.Fits && slices.ContainsFunc(p.Survived, func(o schemas.OOM) bool {
		return o.LimitBytes == 0 || memory.WholeDevice(&in, o.LimitBytes)
	}) {
		p.Fits, p.Because, p.SpareBytes = new(false), Because{Cause: CauseCaught, Caught: p.CaughtOOMs}, nil
	}
	return r
}

// The outcomes of a search.
const (
	FitSome  = "some"       // a value fits, and the next does not
	FitAll   = "all"        // the highest value of the range fits; Odd lists lower values that do not fit
	FitNone  = "none"       // not even the lowest value fits
	FitUnset = "unfinished" // the search was stopped: Largest is the result so far
)

// FitCell is the result of a search for one method on one device.
type FitCell struct {
	Method      string `json:"method"`
	Profile     string `json:"profile"`
	GPU         string `json:"gpu"`
	MemoryBytes int64  `json:"memory_bytes"` // bytes that a process can take
	// Only lists the values of the range that the experiment's options allow, if they do not allow all, for example
	// only the divisors of a batch. The search tried no other values. Barred says why the first other value is not
	// allowed.
	Only   []int64 `json:"only,omitempty"`
	Barred string  `json:"barred,omitempty"`
	// Top is true if the options allow no value above the range's highest: a physical batch, for example, cannot be
	// larger than the batch.
	Top     bool   `json:"top,omitempty"`
	Outcome string `json:"outcome"`
	// Largest is the highest tried value that fits, null if none fits. The fields after Largest are the peaks at the
	// value Largest.
	Largest           *int64 `json:"largest"`
	PeakBytes         *int64 `json:"peak_bytes"`
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"`
	SpareBytes        *int64 `json:"spare_bytes"` // bytes of MemoryBytes that the largest value leaves free
	// Margin is the result that also leaves a margin free for the error of a prediction; null if no margin was
	// requested.
	Margin *FitMargin `json:"margin"`
	// Refused is the lowest value above Largest that was tried and does not fit.
	Refused *int64 `json:"refused"`
	// Odd are the sentences into which package report puts Oddities.
	Odd      []string `json:"odd"`
	Oddities []Oddity `json:"-"`
	// Confidence is the lowest confidence among the runs that decide the result, with its reasons.
	Confidence *schemas.Confidence `json:"confidence"`
	Stopped    string              `json:"stopped,omitempty"`
	Unanswered bool                `json:"-"`      // as in FitSearch
	Probes     []FitProbe          `json:"probes"` // the tried values, in order
}

// FitMargin is the largest value that leaves a margin.
type FitMargin struct {
	Bytes int64 `json:"bytes"` // bytes that are to stay free
	// Largest is the highest tried value that leaves the margin, null if none does. The fields after Largest are the
	// figures at the value Largest.
	Largest           *int64 `json:"largest"`
	PeakBytes         *int64 `json:"peak_bytes"`
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"`
	SpareBytes        *int64 `json:"spare_bytes"`
}

// An Oddity is a tried value that needs less memory than a smaller value, or that fits though a smaller value does not.
// So an untried value between two tried values may behave otherwise than both tried values.
type Oddity struct {
	Value, Below int64  // Value is the larger
	Figure       string // figure that falls, "allocated" or "reserved"; empty if Value fits though Below does not
	Bytes, Was   int64  // bytes of Figure, at Value and at Below
}

// FitProbe is one predicted run of a search. The peaks of a probe that does not fit cover only the time until it
// failed.
type FitProbe struct {
	Value  int64  `json:"value"`
	RunID  string `json:"run_id"`
	Kept   bool   `json:"kept"` // the prediction was made before and taken from the store
	Status string `json:"status"`
	Fits   *bool  `json:"fits"`
	// CaughtOOMs counts the failed requests that the script caught. A run with such requests does not fit if the device
	// had no room for them. A run in which torch recovered by itself may fit.
	CaughtOOMs int `json:"caught_ooms"`
	// Why says why a run that ended well does not fit or, if Fits is null, how the run ended. Package report derives it
	// from Cause if Cause is set.
	Why               string  `json:"why,omitempty"`
	Because           Because `json:"-"`
	PeakBytes         *int64  `json:"peak_bytes"`
	PeakReservedBytes *int64  `json:"peak_reserved_bytes"`
	SpareBytes        *int64  `json:"spare_bytes"` // bytes that stay free; null for a value that does not fit
}

// Fit returns the document with the result of each search.
func Fit(v Vary, searches []FitSearch) FitDocument {
	doc := FitDocument{Schema: FitSchema, Vary: v, Cells: []FitCell{}}
	for i := range searches {
		doc.Cells = append(doc.Cells, fitCell(v, &searches[i]))
	}
	return doc
}

// Nothing reports whether no value fits with any method on any device.
func (d *FitDocument) Nothing() bool {
	return len(d.Cells) > 0 && !slices.ContainsFunc(d.Cells, func(c FitCell) bool { return c.Outcome != FitNone })
}

func fitCell(v Vary, s *FitSearch) FitCell {
	c := FitCell{Method: s.Method, Profile: s.Profile, GPU: s.GPU, MemoryBytes: s.MemoryBytes, Only: s.Only,
		Barred: s.Barred, Top: s.Top, Stopped: s.Stopped, Unanswered: s.Unanswered, Odd: []string{}, Probes: []FitProbe{}}
	runs := slices.Clone(s.Runs)
	slices.SortStableFunc(runs, func(a, b FitRun) int { return cmp.Compare(a.Value, b.Value) })
	var largest, refused *FitRun
	for i := range runs {
		r := &runs[i]
		fits := r.Run.Fits
		c.Probes = append(c.Probes, FitProbe{Value: r.Value, RunID: r.Run.RunID, Kept: r.Kept, Status: r.Run.Status,
			Fits: fits, CaughtOOMs: r.Run.CaughtOOMs, Because: r.Run.Because,
			PeakBytes: r.Run.PeakBytes, PeakReservedBytes: r.Run.PeakReservedBytes, SpareBytes: r.Run.SpareBytes})
		if fits != nil && *fits {
			largest = r
		}
	}
	for i := range runs {
		r, fits := &runs[i], c.Probes[i].Fits
		if fits != nil && !*fits && refused == nil && (largest == nil || r.Value > largest.Value) {
			refused = r
		}
	}
	if largest != nil {
		c.Largest, c.PeakBytes, c.PeakReservedBytes, c.SpareBytes = &largest.Value, largest.Run.PeakBytes,
			largest.Run.PeakReservedBytes, largest.Run.SpareBytes
	}
	withMargin := c.leaves(s.MarginBytes, runs)
	if refused != nil {
		c.Refused = &refused.Value
	}
	switch {
	case s.Stopped != "":
		c.Outcome = FitUnset
	case largest == nil:
		c.Outcome = FitNone
	case largest.Value == c.Highest(&v):
		c.Outcome = FitAll
	default:
		c.Outcome = FitSome
	}
	for _, r := range []*FitRun{largest, refused, withMargin} {
		if r != nil && r.Run.Confidence != nil && (c.Confidence == nil || worse(r.Run.Confidence, c.Confidence)) {
			c.Confidence = r.Run.Confidence
		}
	}
	c.Oddities = oddities(c.Probes)
	return c
}

// leaves sets the cell's largest value that leaves a margin, and returns the run with this value. runs are ordered by
// value.
func (c *FitCell) leaves(margin int64, runs []FitRun) *FitRun {
	if margin == 0 {
		return nil
	}
	c.Margin = &FitMargin{Bytes: margin}
	for i := range slices.Backward(runs) {
		if r := &runs[i]; r.Run.Leaves(margin) {
			c.Margin.Largest, c.Margin.PeakBytes, c.Margin.PeakReservedBytes, c.Margin.SpareBytes = &r.Value,
				r.Run.PeakBytes, r.Run.PeakReservedBytes, r.Run.SpareBytes
			return r
		}
	}
	return nil
}

func worse(a, b *schemas.Confidence) bool {
	return slices.Index(confidence.Levels, a.Level) > slices.Index(confidence.Levels, b.Level)
}

// oddities returns the values that fit above a value that does not fit, and the values whose peaks are below those of
// a smaller value.
func oddities(probes []FitProbe) (out []Oddity) {
	var refused, before *FitProbe
	for i := range probes {
		p := &probes[i]
		switch {
		case p.Fits == nil:
		case !*p.Fits:
			if refused == nil {
				refused = p
			}
		default:
			if refused != nil {
				out = append(out, Oddity{Value: p.Value, Below: refused.Value})
				refused = nil
			}
			if before != nil {
				out = append(out, falls(before, p)...)
			}
			before = p
		}
	}
	return out
}

// falls returns an oddity if p needs less memory than before, a probe with a smaller value. falls compares the
// allocated bytes first, because the cache influences the reserved bytes.
func falls(before, p *FitProbe) []Oddity {
	for _, x := range []struct {
		figure string
		was, n *int64
	}{{"allocated", before.PeakBytes, p.PeakBytes}, {"reserved", before.PeakReservedBytes, p.PeakReservedBytes}} {
		if x.was != nil && x.n != nil && *x.n < *x.was {
			return []Oddity{{p.Value, before.Value, x.figure, *x.n, *x.was}}
		}
	}
	return nil
}

// Lowest returns the smallest value that the search can try.
func (c *FitCell) Lowest(v *Vary) int64 {
	if len(c.Only) > 0 {
		return c.Only[0]
	}
	return v.Low
}

// Highest returns the largest value that the search can try.
func (c *FitCell) Highest(v *Vary) int64 {
	if len(c.Only) > 0 {
		return c.Only[len(c.Only)-1]
	}
	return v.High
}

// More reports whether an untried value above Largest may fit. Without Largest, More reports whether any untried
// value may fit.
func (c *FitCell) More(v *Vary) bool {
	return (c.Outcome == FitAll || c.Outcome == FitUnset) && !c.atTop(v, c.Largest)
}

// MoreWithMargin reports whether an untried value above the largest one that leaves the margin may leave it too.
func (c *FitCell) MoreWithMargin(v *Vary) bool {
	if c.Outcome == FitUnset {
		return !c.atTop(v, c.Margin.Largest)
	}
	return c.More(v) && c.Margin.Largest != nil && *c.Margin.Largest == c.Highest(v)
}

// atTop reports whether a value is the highest that the experiment's options allow.
func (c *FitCell) atTop(v *Vary, value *int64) bool {
	return c.Top && value != nil && *value == c.Highest(v)
}
