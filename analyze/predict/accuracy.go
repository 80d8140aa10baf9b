package predict

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// AccuracySchema is the version of [AccuracyDocument].
const AccuracySchema = "dpsight.accuracy/1"

// AccuracyDocument is what "dpsight accuracy --format json" prints: predictions compared with measurements.
type AccuracyDocument struct {
	Schema      string                    `json:"schema"`
	Predictions string                    `json:"predictions"` // name of the predictions, as the user gave it
	Experiments []AccuracyExperiment      `json:"experiments"`
	Allocated   confidence.AccuracyErrors `json:"allocated"`
	Reserved    confidence.AccuracyErrors `json:"reserved"`
	Fitting     AccuracyFitting           `json:"fitting"`
	// Unended lists measured experiments whose prediction did not end well, for example because the phantom GPU refused
	// the script. The document's error figures leave out these experiments.
	Unended []confidence.AccuracyUnended `json:"unended"`
	// Unpredicted lists measured experiments without a prediction. Unmeasured lists predicted experiments without a
	// measurement.
	Unpredicted []string      `json:"unpredicted"`
	Unmeasured  []string      `json:"unmeasured"`
	Warnings    []string      `json:"warnings"` // sentences that report makes of Unlike and Passed
	Unlike      []Unlike      `json:"-"`
	Passed      []gate.Passed `json:"-"`
}

// Unlike is a condition in which the prediction of an experiment differs from its measurement.
type Unlike struct {
	What                string // what differs: [UnlikeGPU] or [UnlikeTorch]
	Predicted, Measured string
	Label               string // label of the experiment
}

// The values of [Unlike.What].
const (
	UnlikeGPU   = "gpu"
	UnlikeTorch = "torch"
)

// AccuracyExperiment is one experiment that was predicted and measured.
type AccuracyExperiment struct {
	Key        *string        `json:"key"`
	Name       string         `json:"name"`
	Label      string         `json:"-"` // the name, made unique if several experiments have it
	Params     map[string]any `json:"params"`
	Device     *string        `json:"gpu"` // GPU on which the experiment was measured
	Torch      *string        `json:"torch"`
	Runs       int            `json:"runs"`                 // number of measured runs that ended well
	Confidence string         `json:"confidence,omitempty"` // level of confidence of the prediction
	// Doubts are the kinds of doubt about the prediction, as in [schemas.Doubts].
	Doubts      []string   `json:"doubts,omitempty"`
	Allocated   Prediction `json:"peak_bytes"`
	Reserved    Prediction `json:"peak_reserved_bytes"`
	Allocations Prediction `json:"allocations"` // number of blocks allocated in the recorded steps
	// Moved is how many bytes of the prediction are in the wrong category or wrong in size. Moved is the larger of two
	// sums over categories: the bytes that the prediction has too many, and the bytes that it has too few. Moved is
	// null if either peak is not broken down, or if different rules made their categories.
	Moved *int64 `json:"moved_bytes"`
	// Most is the category with the largest difference in absolute value; MostBytes is that difference, predicted
	// minus measured. Most is empty if no category differs or if Moved is null.
	Most      schemas.Category `json:"most,omitempty"`
	MostBytes int64            `json:"most_bytes,omitempty"`
}

// Prediction is one measured figure together with the predicted one.
type Prediction struct {
	Measured  *int64   `json:"measured"`
	Predicted *int64   `json:"predicted"`
	Error     *float64 `json:"error"` // difference over the measured value: -0.01 is a prediction one percent too low
	// MeasuredHigh and PredictedHigh are the upper bounds of a bounded figure, which has no error. MeasuredHigh and
	// PredictedHigh are null for a figure that is not bounded.
	MeasuredHigh  *int64 `json:"measured_high,omitempty"`
	PredictedHigh *int64 `json:"predicted_high,omitempty"`
}

// AccuracyFitting is how often prediction and measurement agree on whether an experiment fits into the memory. An
// experiment is not counted if some of its runs ended well and others ran out of memory.
type AccuracyFitting struct {
	Of          int `json:"of"` // number of experiments for which both sides state whether it fits
	Agree       int `json:"agree"`
	OutOfMemory int `json:"out_of_memory"` // number of these experiments that fit on neither side
	// Overrun lists experiments that were predicted to fit and ran out of memory. Refused lists experiments that were
	// predicted to run out of memory and ended well.
	Overrun []string `json:"overrun"`
	Refused []string `json:"refused"`
}

// Accuracy compares predictions with measured runs of the same experiments. A run that ran out of memory only shows
// that the experiment does not fit. Accuracy ignores runs that ended badly in another way, predictions among the runs,
// and measured runs among the predictions.
func Accuracy(predicted schemas.Baseline, runs []analyze.Summary, name string) AccuracyDocument {
	measured, passed := Measurements(predicted, runs)
	doc := AccuracyOf(predicted, measured, name)
	doc.Passed = passed
	return doc
}

// Measurements reduces the measured runs that ended well or ran out of memory to a baseline document. For each
// experiment, Measurements takes the runs of one origin, if possible the prediction's origin.
func Measurements(predicted schemas.Baseline, runs []analyze.Summary) (schemas.Baseline, []gate.Passed) {
	runs = slices.DeleteFunc(slices.Clone(runs), func(s analyze.Summary) bool {
		return s.Source != schemas.Measured || s.Status != schemas.StatusOK && s.Status != schemas.StatusOOM
	})
	kept, passed := gate.OneOrigin(runs, predictedOf(predicted))
	return gate.BaselineOf(kept, ""), passed
}

// AccuracyOf is [Accuracy] with measured runs that [Measurements] has already reduced.
func AccuracyOf(predicted, measured schemas.Baseline, name string) AccuracyDocument {
	doc := AccuracyDocument{Schema: AccuracySchema, Predictions: name, Experiments: []AccuracyExperiment{},
		Fitting: AccuracyFitting{Overrun: []string{}, Refused: []string{}}, Unended: []confidence.AccuracyUnended{},
		Unpredicted: []string{}, Unmeasured: []string{}, Warnings: []string{}}
	base := predictedOf(predicted)
	now := slices.DeleteFunc(slices.Clone(measured.Experiments), func(e schemas.BaselineExperiment) bool {
		return e.Source != schemas.Measured || fitted(&e) == nil && e.Runs == 0
	})
	now = oneEnding(now)
	pairs, labels, theirs := gate.MatchExperiments(base, now, false), gate.ExperimentLabels(now),
		gate.ExperimentLabels(base)
	for i := range base {
		j, matched := pairs[i]
		switch {
		case !matched:
			doc.Unmeasured = append(doc.Unmeasured, theirs[i])
			continue
		case base[i].Runs == 0 && base[i].Status != schemas.StatusOOM:
			doc.Unended = append(doc.Unended, confidence.AccuracyUnended{Name: labels[j], Status: base[i].Status})
			continue
		}
		doc.Fitting.add(fitted(&base[i]), fitted(&now[j]), labels[j])
		if base[i].Runs > 0 && now[j].Runs > 0 {
			x := accuracyOf(&base[i], &now[j])
			x.Label = labels[j]
			doc.Experiments = append(doc.Experiments, x)
		}
		if was, is := base[i].Versions.GPU, now[j].Versions.GPU; was != nil && is != nil && *was != *is {
			doc.Unlike = append(doc.Unlike, Unlike{UnlikeGPU, *was, *is, labels[j]})
		}
		if was, is := base[i].Versions.Torch, now[j].Versions.Torch; was != nil && is != nil && *was != *is {
			doc.Unlike = append(doc.Unlike, Unlike{UnlikeTorch, *was, *is, labels[j]})
		}
	}
	matched := slices.Collect(maps.Values(pairs))
	for j := range now {
		if !slices.Contains(matched, j) {
			doc.Unpredicted = append(doc.Unpredicted, labels[j])
		}
	}
	doc.Allocated = errorsOf(doc.Experiments, func(x *AccuracyExperiment) *Prediction { return &x.Allocated })
	doc.Reserved = errorsOf(doc.Experiments, func(x *AccuracyExperiment) *Prediction { return &x.Reserved })
	return doc
}

// predictedOf returns the predicted experiments of a baseline.
func predictedOf(b schemas.Baseline) []schemas.BaselineExperiment {
	return slices.DeleteFunc(slices.Clone(b.Experiments), func(e schemas.BaselineExperiment) bool {
		return e.Source != schemas.Predicted
	})
}

// fitted returns whether an experiment fits into the memory. fitted returns nil if the experiment's runs do not show
// it, or disagree.
func fitted(e *schemas.BaselineExperiment) *bool {
	oom := e.Status == schemas.StatusOOM
	if oom == (e.Runs > 0) {
		return nil
	}
	return new(!oom)
}

// oneEnding leaves out an experiment that ran out of memory if another entry of the list, with the same content, ended
// well. With both entries, a prediction would match neither.
func oneEnding(list []schemas.BaselineExperiment) []schemas.BaselineExperiment {
	var kept []schemas.BaselineExperiment
	all := gate.Contents(list)
	for i := range all {
		if all[i].Runs > 0 || !slices.ContainsFunc(all, func(c gate.Content) bool {
			return c.Runs > 0 && c.ContentKey == all[i].ContentKey && c.Name == all[i].Name &&
				c.ParamsText == all[i].ParamsText &&
				slices.Equal(c.Command, all[i].Command)
		}) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

func (f *AccuracyFitting) add(predicted, measured *bool, label string) {
	if predicted == nil || measured == nil {
		return
	}
	f.Of++
	if !*predicted || !*measured {
		f.OutOfMemory++
	}
	switch {
	case *predicted == *measured:
		f.Agree++
	case *predicted:
		f.Overrun = append(f.Overrun, label)
	default:
		f.Refused = append(f.Refused, label)
	}
}

// Predictions returns the predicted runs among runs.
func Predictions(runs []analyze.Summary) []analyze.Summary {
	return slices.DeleteFunc(slices.Clone(runs), func(s analyze.Summary) bool { return s.Source != schemas.Predicted })
}

func accuracyOf(predicted, measured *schemas.BaselineExperiment) AccuracyExperiment {
	x := AccuracyExperiment{Key: measured.Key, Name: measured.Name, Params: measured.Params,
		Device: measured.Versions.GPU, Torch: measured.Versions.Torch, Runs: measured.Runs,
		Confidence: predicted.Confidence, Doubts: predicted.Doubts,
		Allocated: heldTo(predicted.PeakBytes, measured.PeakBytes), Reserved: heldTo(predicted.PeakReservedBytes,
			measured.PeakReservedBytes),
		Allocations: heldTo(predicted.Allocations, measured.Allocations)}
	x.Allocated.MeasuredHigh, x.Allocated.PredictedHigh = openHigh(measured), openHigh(predicted)
	if x.Allocated.Bounded() {
		x.Allocated.Error = nil
		return x
	}
	if predicted.Categories == nil || measured.Categories == nil {
		return x
	}
	if predicted.Rules != nil && measured.Rules != nil && predicted.OtherRules(measured) {
		return x
	}
	var more, less int64
	for _, c := range schemas.Categories {
		d := predicted.Categories[c] - measured.Categories[c]
		more, less = more+max(d, 0), less+max(-d, 0)
		if max(d, -d) > max(x.MostBytes, -x.MostBytes) {
			x.Most, x.MostBytes = c, d
		}
	}
	x.Moved = new(max(more, less))
	return x
}

// Bounded reports whether one of the two figures is known within bounds only.
func (p *Prediction) Bounded() bool { return p.MeasuredHigh != nil || p.PredictedHigh != nil }

// openHigh returns the upper bound of a bounded peak, nil if the peak is known to the byte.
func openHigh(e *schemas.BaselineExperiment) *int64 {
	if e.PeakHighBytes == nil || e.PeakBytes == nil || *e.PeakHighBytes == *e.PeakBytes {
		return nil
	}
	return e.PeakHighBytes
}

func heldTo(predicted, measured *int64) Prediction {
	p := Prediction{Measured: measured, Predicted: predicted}
	if predicted != nil && measured != nil && *measured != 0 {
		e := float64(*predicted-*measured) / float64(*measured)
		p.Error = &e
	}
	return p
}

func errorsOf(list []AccuracyExperiment, figure func(*AccuracyExperiment) *Prediction) confidence.AccuracyErrors {
	var e confidence.AccuracyErrors
	var sizes []float64
	for i := range list {
		p := figure(&list[i])
		if p.Error == nil {
			continue
		}
		size := math.Abs(*p.Error)
		sizes = append(sizes, size)
		if size == 0 {
			e.Exact++
		}
		if e.Worst == nil || size > *e.Worst {
			e.Worst, e.Where = &size, list[i].Label
		}
	}
	e.Of = len(sizes)
	if e.Of == 0 {
		return e
	}
	if *e.Worst == 0 {
		e.Where = ""
	}
	slices.SortFunc(sizes, cmp.Compare)
	median := timing.Middle(sizes)
	e.Median = &median
	return e
}
