package analyze

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// BaselineOf reduces runs to one entry an experiment, sorted by name and parameters: the document that --write-baseline
// writes, and the form in which a check compares. Repeats of an experiment are runs of one key or, without a suite, of
// one name, parameters and command, whatever they ran on: a check is there to tell what a new torch or another commit
// does. How the figures are known does tell experiments apart: a predicted and a measured run have no median, nor have
// predictions for two devices.
func BaselineOf(runs []Summary, version string) schemas.Baseline {
	doc := schemas.Baseline{Version: version, Experiments: []schemas.BaselineExperiment{}}
	groups := map[string][]*Summary{}
	var order []string
	for i := range runs {
		id := runs[i].gated()
		if groups[id] == nil {
			order = append(order, id)
		}
		groups[id] = append(groups[id], &runs[i])
	}
	for _, id := range order {
		doc.Experiments = append(doc.Experiments, experimentOf(groups[id]))
	}
	slices.SortStableFunc(doc.Experiments, func(a, b schemas.BaselineExperiment) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(paramsText(a.Params), paramsText(b.Params)),
			strings.Compare(commandText(a.Command), commandText(b.Command)), strings.Compare(a.Source, b.Source))
	})
	return doc
}

// gated tells the experiments of a gate apart: content, and what it was made on.
func (s *Summary) gated() string {
	id := s.Key + toldText(s.Params)
	if s.Key == "" {
		id = s.title() + "\x00" + paramsText(s.Params) + "\x00" + commandText(s.command)
	}
	id += "\x00" + s.Source
	if p := s.Profile; p != nil {
		id += "\x00" + *p
	}
	return id
}

// Newest leaves the newest run of each experiment, with its repeats where a suite made it, and says what it left out. A
// store that is kept from one check to the next holds the runs before and after a change: their median would hide what
// grew.
func Newest(runs []Summary) (kept []Summary, left []string) {
	newest := map[string]*Summary{}
	for i := range runs {
		id := runs[i].gated()
		if n := newest[id]; n == nil || !runs[i].Started.Before(n.Started) {
			newest[id] = &runs[i]
		}
	}
	older := map[string]int{}
	for i := range runs {
		r, n := &runs[i], newest[runs[i].gated()]
		if r == n || r.SuiteID != "" && r.SuiteID == n.SuiteID {
			kept = append(kept, *r)
		} else {
			older[r.title()]++
		}
	}
	for _, name := range sortedKeys(older) {
		left = append(left, fmt.Sprintf("%s: %s left out: the newest of each experiment counts, with its repeats in "+
			"the same suite", name, plural(older[name], "older run is", "older runs are")))
	}
	return kept, left
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// experimentOf reduces the repeats of one experiment.
func experimentOf(runs []*Summary) schemas.BaselineExperiment {
	c := newCell(runs)
	e := schemas.BaselineExperiment{Key: orNull(c.Key), Name: c.title(), Params: c.Params, Command: c.command,
		Source: c.Source, Profile: c.Profile, Confidence: c.Confidence, Doubts: c.doubts, Status: schemas.StatusOK,
		Runs: c.Good,
		Versions: schemas.Versions{Torch: c.factOrNull("torch"), CUDA: c.factOrNull("CUDA"),
			Opacus: c.factOrNull("Opacus"), GPU: c.factOrNull("GPU"), Driver: c.factOrNull("driver")}}
	for _, r := range runs {
		if r.Status != schemas.StatusOK {
			e.Status, e.Reason = r.Status, r.Reason
			break
		}
	}
	if c.Good == 0 { // what it held until it ended says nothing of what it needs
		return e
	}
	e.PeakBytes, e.PeakReservedBytes, e.PeakDeviceBytes = c.PeakBytes, c.PeakReservedBytes, c.PeakDeviceBytes
	e.Allocations = c.Allocations
	if c.BrokenDown() {
		e.Categories = map[schemas.Category]int64{}
		for _, b := range c.Main().Categories {
			if b.Bytes != 0 {
				e.Categories[b.Category] = b.Bytes
			}
		}
	}
	for i := range c.Phases.Phases {
		m := Metric{MetricPhasePeak, c.Phases.Phases[i].Phase}
		if v := m.of(&c.Summary); v != nil {
			if e.PhasePeaks == nil {
				e.PhasePeaks = map[string]int64{}
			}
			e.PhasePeaks[m.Of] = int64(*v)
		}
	}
	if t := c.StepMS; t != nil {
		e.StepMS = &schemas.BaselineTime{Median: t.Median, Low: t.Low, High: t.High, Clock: t.Clock}
	}
	e.SamplesPerS, e.TokensPerS, e.JoulesPerSample = c.SamplesPerS, c.TokensPerS, c.JoulesPerSample
	return e
}

// BaselineGaps says what a check against the document will not see.
func BaselineGaps(b *schemas.Baseline) []string {
	g := newGrouped()
	labels := experimentLabels(b.Experiments)
	for i := range b.Experiments {
		switch e := &b.Experiments[i]; {
		case e.Status != schemas.StatusOK:
			g.add("it did not end well ("+e.Status+"), and a check will find nothing wrong with that", labels[i])
		case e.PeakBytes == nil:
			g.add("it has no peak, so a check will not compare it", labels[i])
		}
	}
	return g.lines()
}

func (s *Summary) factOrNull(what string) *string {
	for i := range s.facts {
		if s.facts[i].What == what {
			return &s.facts[i].Value
		}
	}
	return nil
}

// toldParams say what was told of the machine. A suite's key knows of its file alone, not of the machine that it was
// run on.
var toldParams = []string{"world_size", "ranks", "gpus_per_node", "gpu_memory"}

// toldText is those parameters as one string, empty where nothing was told.
func toldText(params map[string]any) string {
	told := map[string]any{}
	for _, k := range toldParams {
		if v, ok := params[k]; ok {
			told[k] = v
		}
	}
	return paramsText(told)
}

// paramsText is parameters as one string that equal parameters share.
func paramsText(params map[string]any) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(params)) {
		fmt.Fprintf(&b, "%q=%s\x00", k, textOf(params[k]))
	}
	return b.String()
}

// textOf prints a parameter's value: a whole number as one, whether it came from JSON, which makes one number type of
// many, or not.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if b, err := json.Marshal(v); err == nil {
		return string(b)
	}
	return fmt.Sprint(v)
}
