package gate

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// PlacesTables lists the tables that [PlacesOf] needs.
const PlacesTables = analyze.SummaryTables | schemas.WantDetail

// A baseline keeps only the largest places of a run: at most mostPlaces, each with at least 1/leastPlaces of the peak.
const (
	mostPlaces  = 40
	leastPlaces = 1000
)

// PlacesOf divides the run's peak by category, module and line, the largest part first. PlacesOf returns nil if the
// peak is not broken down. Modules that differ only in the number of their layer are merged.
func PlacesOf(in schemas.Tables) []schemas.BaselinePlace {
	sum := analyze.Summarize(in)
	main := sum.Main()
	if main == nil || !sum.BrokenDown() {
		return nil
	}
	at := memory.PlaceOf(&in, main)
	ledger, index := memory.NewLedger(&in, at), memory.NewModuleIndex(&in, at.Rank)
	fold, lines := grouping.FoldsOf(in.Modules), grouping.LinesOf(&in, at.Rank)
	parts, all := map[schemas.BaselinePlace]int64{}, int64(0)
	var known memory.ModuleBytes
	for i, a := range ledger.Allocs {
		if !a.LiveAt(main.At.Event) {
			continue
		}
		var p schemas.BaselinePlace
		if m, _ := index.Module(ledger, i, main.At.Event, &known); m != nil {
			p.Module = fold.Fold(grouping.ModulePath(m, 0))
		}
		if l := lines[a.Line]; l != nil {
			p.File, p.Line, p.Function = l.File, l.Number, l.Function
		}
		place, _ := ledger.Category(i, main.At.Event)
		p.Category = schemas.Categories[place]
		parts[p] += a.RequestedBytes
		p.Category = schemas.Slack
		parts[p] += a.BlockBytes - a.RequestedBytes
		all += a.BlockBytes
	}
	var out []schemas.BaselinePlace
	for p, bytes := range parts {
		if p.Bytes = bytes; bytes > 0 && bytes >= all/leastPlaces {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b schemas.BaselinePlace) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), comparePlaces(&a, &b))
	})
	return out[:min(len(out), mostPlaces)]
}

// comparePlaces orders places with equal bytes by their category, module and line.
func comparePlaces(a, b *schemas.BaselinePlace) int {
	return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Module, b.Module), cmp.Compare(a.File, b.File),
		cmp.Compare(a.Line, b.Line))
}

// A Place is a category, a module and a line whose blocks hold more at an experiment's peak than at the baseline's.
type Place struct {
	Category schemas.Category `json:"category"`
	Module   string           `json:"module,omitempty"`
	File     string           `json:"file,omitempty"`
	Line     int64            `json:"line,omitempty"` // the line number in the run's code
	Function string           `json:"function,omitempty"`
	// BaselineBytes is null if the baseline has no places, and 0 if it has places but not this one; see
	// [schemas.BaselineExperiment.Places].
	BaselineBytes *int64 `json:"baseline_bytes"`
	CurrentBytes  int64  `json:"current_bytes"`
}

// Grew returns by how many bytes the place grew. Unknown bytes in the baseline count as 0.
func (p *Place) Grew() int64 {
	if p.BaselineBytes == nil {
		return p.CurrentBytes
	}
	return p.CurrentBytes - *p.BaselineBytes
}

// Locate returns where an experiment grew, the largest growth first. Two lines count as the same if their file and
// function are the same, since code moves. If the baseline has no places, Locate lists the places that hold most of the
// run's bytes.
func (x *Experiment) Locate(base, now []schemas.BaselinePlace) {
	type key struct {
		category               schemas.Category
		module, file, function string
	}
	keyOf := func(p *schemas.BaselinePlace) key { return key{p.Category, p.Module, p.File, p.Function} }
	was, at := map[key]int64{}, map[key]int{}
	for i := range base {
		was[keyOf(&base[i])] += base[i].Bytes
	}
	var places []Place
	for i := range now {
		p := &now[i]
		k := keyOf(p)
		n, known := at[k]
		if !known {
			n = len(places)
			at[k], places = n, append(places, Place{p.Category, p.Module, p.File, p.Line, p.Function, nil, 0})
			if base != nil {
				places[n].BaselineBytes = new(was[k])
			}
		}
		places[n].CurrentBytes += p.Bytes
	}
	places = slices.DeleteFunc(places, func(p Place) bool { return p.Grew() <= 0 })
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(b.Grew(), a.Grew()) })
	x.Places = places
}
