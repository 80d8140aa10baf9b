package ranks

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// A tally counts the blocks of two devices into parts.
type tally struct {
	in                         *schemas.Tables
	fold                       func(path string) string
	less                       bool // the outlier holds less than the other ranks
	categories, modules, lines parts
}

// parts are the parts of one kind, such as categories. The key is the part without its bytes.
type parts map[Part]*Part

func newTally(in *schemas.Tables, less bool) *tally {
	return &tally{in, grouping.FoldsOf(in.Modules).Fold, less, parts{}, parts{}, parts{}}
}

// count adds the blocks of a device that are live just after an event: to the side of the outlier, or, if beside is
// true, to the side of the device beside it.
func (t *tally) count(l *memory.Ledger, rank int32, seq int64, beside bool) {
	index, lines := memory.NewModuleIndex(t.in, rank), grouping.LinesOf(t.in, rank)
	for i, a := range l.Allocs {
		if !a.LiveAt(seq) {
			continue
		}
		place, _ := l.Category(i, seq)
		module, line := t.module(index, l, i, seq), Part{}
		if asked := lines[a.Line]; asked != nil {
			line = Part{Line: grouping.LineText(asked), Source: asked.Text}
		}
		t.add(Part{Category: schemas.Categories[place], Module: module}, a.RequestedBytes, beside)
		t.add(Part{Category: schemas.Slack, Module: module}, a.BlockBytes-a.RequestedBytes, beside)
		t.lines.add(line, a.BlockBytes, beside)
	}
}

// add adds bytes to the parts of a category and of a module.
func (t *tally) add(of Part, bytes int64, beside bool) {
	t.categories.add(Part{Category: of.Category}, bytes, beside)
	t.modules.add(of, bytes, beside)
}

// module returns the path of a block's module, cut after the first number that folds, since the layers of a transformer
// differ only by their number. module returns "" if no single module is known.
func (t *tally) module(index *memory.ModuleIndex, l *memory.Ledger, i int, seq int64) string {
	var known memory.ModuleBytes
	m, _ := index.Module(l, i, seq, &known)
	if m == nil || m == memory.IsSharedByModules {
		return ""
	}
	path := t.fold(grouping.ModulePath(m, 0))
	if before, _, folds := strings.Cut(path, "*"); folds {
		return before + "*"
	}
	return path
}

func (x parts) add(key Part, bytes int64, beside bool) {
	p := x[key]
	if p == nil {
		p = new(key)
		x[key] = p
	}
	if beside {
		p.BesideBytes += bytes
	} else {
		p.Bytes += bytes
	}
	p.DeltaBytes = p.Bytes - p.BesideBytes
}

// list returns the parts that differ. The parts that make most of the difference come first. If less is true, these are
// the most negative ones.
func (x parts) list(less bool) []Part {
	out := []Part{}
	for _, p := range slices.Collect(maps.Values(x)) {
		if p.DeltaBytes != 0 {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Part) int {
		bySize := cmp.Compare(b.DeltaBytes, a.DeltaBytes)
		if less {
			bySize = -bySize
		}
		return cmp.Or(bySize, cmp.Compare(schemas.CategoryPlace(a.Category), schemas.CategoryPlace(b.Category)),
			grouping.CompareNames(a.Module, b.Module), cmp.Compare(a.Line, b.Line))
	})
	return out
}
