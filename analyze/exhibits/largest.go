package exhibits

import (
	"cmp"
	"strconv"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas"
)

// A Largest is the largest batch with which runs of one method fitted one device.
type Largest struct {
	Key    string // key of the method
	Device string
	Batch  float64 // the largest batch that fits; 0 = none fits
	RunID  string  // id of the run with that batch
	Open   bool    // no larger batch ran out of memory, so a still larger one may fit
	Source string
}

// batchParams are parameters that set how many samples a step holds at once. If the physical batch size is given, it
// decides, so it comes first. The runs show which of the parameters was varied.
var batchParams = []string{"physical_batch_size", "batch_size"}

// LargestOf finds the largest batch of each method among runs, trials of searches included. LargestOf returns nil if no
// run ran out of memory, or if the runs of a method differ in more than their batch, since such runs do not show what
// fits.
func LargestOf(runs []analyze.Summary) (out []Largest) {
	param, most := "", 1
	for _, p := range batchParams {
		values := map[string]bool{}
		for i := range runs {
			values[factOf(&runs[i], p)] = true
		}
		if len(values) > most {
			param, most = p, len(values)
		}
	}
	if param == "" {
		return nil
	}
	type place struct{ key, device string }
	type found struct {
		batch   float64
		run     *analyze.Summary
		refused float64 // the largest batch that ran out of memory; 0 = none
		others  string  // values of the other parameters
	}
	var places []place
	best := map[place]*found{}
	refused := false
	for i := range runs {
		s := &runs[i]
		batch, err := strconv.ParseFloat(factOf(s, param), 64)
		if err != nil || s.Method() == "" || s.Status != schemas.StatusOK && s.Status != schemas.StatusOOM {
			continue
		}
		at := place{s.Method(), cmp.Or(orNone(s.Profile), s.GPU)}
		others := factOf(s, "model") + " " + factOf(s, "preset") + " " + factOf(s, "seq_len") + " " + factOf(s, "precision")
		f := best[at]
		if f == nil {
			f = &found{others: others}
			best[at] = f
			places = append(places, at)
		}
		switch {
		case f.others != others:
			return nil
		case s.Status == schemas.StatusOOM:
			refused = true
			f.refused = max(f.refused, batch)
		case batch > f.batch:
			f.batch, f.run = batch, s
		}
	}
	if !refused {
		return nil
	}
	for _, at := range places {
		f := best[at]
		l := Largest{Key: at.key, Device: at.device, Open: f.refused <= f.batch}
		if f.run != nil {
			l.Batch, l.RunID, l.Source = f.batch, f.run.RunID, f.run.Source
		}
		out = append(out, l)
	}
	return out
}

func orNone(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func factOf(s *analyze.Summary, name string) string {
	if f := s.RunFact(name); f != nil {
		return f.Value
	}
	return ""
}
