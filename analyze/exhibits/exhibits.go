// Package exhibits prepares the data of a paper's tables and figures from a study: which experiments to compare, in
// which order, and which components, phases and settings get a row.
package exhibits

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// A Paper is a study whose experiments are grouped and ordered as a paper's tables and figures show them.
type Paper struct {
	Study *compare.Study
	// Methods are the keys of all entries in the order of every table and figure: the baseline first, then by step
	// time.
	Methods []string
	// Swept are the parameters that vary while the method does not, the outermost first.
	Swept []string
	// Groups has one group for each combination of the swept parameters' values, in order, and a single group if
	// nothing is swept.
	Groups []Group
}

// A Group has the experiments with the same values of the swept parameters, in the order of the methods.
type Group struct {
	Values  []string // values of the swept parameters; empty if the group lacks one
	Entries []Entry
}

// An Entry is one experiment of a group.
type Entry struct {
	Key string // key of the entry's method, else its label: its name in the whole paper
	// Variant lists the values that distinguish the entry from others of its method in the group. Variant is empty if
	// no value distinguishes the entry.
	Variant []string
	*compare.Cell
}

// Arrange groups and orders a study's experiments. Methods or names listed in order come first. If only is not empty,
// Arrange leaves out all other methods.
func Arrange(s *compare.Study, order, only []string) Paper {
	p := Paper{Study: s}
	var cells []*compare.Cell
	for i := range s.Cells {
		c := &s.Cells[i]
		if len(only) == 0 || slices.Contains(only, c.Method()) || slices.Contains(only, c.Label) ||
			slices.Contains(only, c.Name) {
			cells = append(cells, c)
		}
	}
	keys := keysOf(cells)
	if several(keys) {
		p.Swept = sweptParams(s, cells)
		if severalGPUs(cells, p.Swept) {
			p.Swept = slices.Insert(p.Swept, 0, GPU)
		}
	}
	p.group(cells, keys)
	if !slices.ContainsFunc(p.Groups, func(g Group) bool { return len(g.Entries) > 1 }) {
		p.Swept = nil // every place has one experiment, so the swept values are compared
		for i, c := range cells {
			keys[i] = c.Label
		}
		p.group(cells, keys)
	}
	p.order(order)
	p.leaveStrangers()
	return p
}

// leaveStrangers removes an entry's comparison with a baseline from another group, if at least two groups have a
// baseline: such a difference would come from the groups' settings.
func (p *Paper) leaveStrangers() {
	baselines := 0
	for i := range p.Groups {
		if p.Groups[i].Baseline() != nil {
			baselines++
		}
	}
	if baselines < 2 {
		return
	}
	for i := range p.Groups {
		entries := p.Groups[i].Entries
		for k := range entries {
			e := &entries[k]
			if e.Baseline == nil || slices.ContainsFunc(entries, func(o Entry) bool { return o.RunID == e.Baseline.RunID }) {
				continue
			}
			alone := *e.Cell
			alone.Baseline, alone.Overhead = nil, nil
			e.Cell = &alone
		}
	}
}

// keysOf names each cell by its method or, without one, by its label.
func keysOf(cells []*compare.Cell) []string {
	keys := make([]string, len(cells))
	for i, c := range cells {
		keys[i] = cmp.Or(c.Method(), c.Label)
	}
	return keys
}

// GPU is the name that stands among the swept parameters if methods ran on several GPUs.
const GPU = "GPU"

// severalGPUs reports whether experiments that are alike in method and parameters ran on different GPUs.
func severalGPUs(cells []*compare.Cell, swept []string) bool {
	on := map[string]string{}
	for _, c := range cells {
		if c.Method() == "" {
			continue
		}
		place := c.Method()
		for _, param := range swept {
			place += "\x00" + c.Fact(param)
		}
		gpu := c.Fact(GPU)
		if before, known := on[place]; known && before != gpu {
			return true
		}
		on[place] = gpu
	}
	return false
}

func several(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return k != keys[0] })
}

// sweptParams returns the parameters in which cells of one method differ and that follow from no other parameter. A
// parameter that only this method has is not swept: its values are variants of the method.
func sweptParams(s *compare.Study, cells []*compare.Cell) (swept []string) {
	ids := make([]identity.Identity, len(cells))
	byMethod, order := map[string][]int{}, []string{}
	for i, c := range cells {
		ids[i] = c.Identity
		if byMethod[c.Method()] == nil {
			order = append(order, c.Method())
		}
		byMethod[c.Method()] = append(byMethod[c.Method()], i)
	}
	others := func(method, param string) bool {
		return len(byMethod) == 1 || slices.ContainsFunc(cells, func(c *compare.Cell) bool {
			return c.Method() != method && c.Fact(param) != ""
		})
	}
	for _, method := range order {
		if method == "" {
			continue
		}
		for _, param := range identity.TellingParams(ids, byMethod[method]) {
			if !slices.Contains(swept, param) && param != "method" && !slices.Contains(identity.LengthParams, param) &&
				others(method, param) {
				swept = append(swept, param)
			}
		}
	}
	slices.SortStableFunc(swept, func(a, b string) int {
		return slices.Index(s.Configuration.Varying, a) - slices.Index(s.Configuration.Varying, b)
	})
	return swept
}

// group divides the cells by the values of the swept parameters. Experiments of one group that share a key differ
// in something else, and their labels tell them apart.
func (p *Paper) group(cells []*compare.Cell, keys []string) {
	p.Groups = nil
	for i, c := range cells {
		values := make([]string, len(p.Swept))
		for k, param := range p.Swept {
			values[k] = c.Fact(param)
		}
		at := slices.IndexFunc(p.Groups, func(g Group) bool { return slices.Equal(g.Values, values) })
		if at < 0 {
			at = len(p.Groups)
			p.Groups = append(p.Groups, Group{Values: values})
		}
		p.Groups[at].Entries = append(p.Groups[at].Entries, Entry{Key: keys[i], Cell: c})
	}
	slices.SortStableFunc(p.Groups, func(a, b Group) int { return compareValues(a.Values, b.Values) })
	for g := range p.Groups {
		entries, alike := p.Groups[g].Entries, map[string][]int{}
		ids := make([]identity.Identity, len(entries))
		for i, e := range entries {
			ids[i] = e.Identity
			alike[e.Key] = append(alike[e.Key], i)
		}
		for _, same := range alike {
			if len(same) < 2 {
				continue
			}
			params := identity.TellingParams(ids, same)
			for _, i := range same {
				e := &entries[i]
				for _, param := range params {
					if v := e.Fact(param); v != "" {
						e.Variant = append(e.Variant, v)
					}
				}
				if len(p.Groups) > 1 && len(e.Variant) > 0 { // such labels also have the group's values
					e.Key += " " + strings.Join(e.Variant, " ")
				} else {
					e.Key = e.Label
				}
			}
		}
	}
}

// compareValues orders numbers by value and other values alphabetically.
func compareValues(a, b []string) int {
	for i := range a {
		x, errX := strconv.ParseFloat(a[i], 64)
		y, errY := strconv.ParseFloat(b[i], 64)
		c := strings.Compare(a[i], b[i])
		if errX == nil && errY == nil {
			c = cmp.Compare(x, y)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// order sorts the methods, and each group's entries, in the same way: the baseline first, then by step time. A method's
// time comes from the last group that has the method, since differences are largest there.
func (p *Paper) order(asked []string) {
	type place struct {
		asked, class int
		time, peak   float64
		first        int
	}
	places := map[string]place{}
	for _, g := range p.Groups {
		for _, e := range g.Entries {
			at := place{asked: len(asked), class: class(e.Cell), time: math.Inf(1), peak: math.Inf(1)}
			if i := slices.IndexFunc(asked, func(a string) bool { return a == e.Key || a == e.Name }); i >= 0 {
				at.asked = i
			}
			if e.StepMS != nil && e.Status == schemas.StatusOK {
				at.time = e.StepMS.Median
			}
			if e.PeakBytes != nil && e.Status == schemas.StatusOK {
				at.peak = float64(*e.PeakBytes)
			}
			before, known := places[e.Key]
			if !known {
				p.Methods = append(p.Methods, e.Key)
				at.first = len(places)
			} else {
				at.first, at.class = before.first, min(at.class, before.class)
				if math.IsInf(at.time, 1) {
					at.time = before.time
				}
				if math.IsInf(at.peak, 1) {
					at.peak = before.peak
				}
			}
			places[e.Key] = at
		}
	}
	slices.SortStableFunc(p.Methods, func(a, b string) int {
		x, y := places[a], places[b]
		return cmp.Or(x.asked-y.asked, x.class-y.class, cmp.Compare(x.time, y.time), cmp.Compare(x.peak, y.peak),
			x.first-y.first)
	})
	for g := range p.Groups {
		slices.SortStableFunc(p.Groups[g].Entries, func(a, b Entry) int {
			return slices.Index(p.Methods, a.Key) - slices.Index(p.Methods, b.Key)
		})
	}
}

// class returns 0 for a baseline, 2 for a run that only computes norms and so is no private training, and 1 for all
// other experiments.
func class(c *compare.Cell) int {
	switch {
	case c.IsBaseline():
		return 0
	case c.NormsOnly():
		return 2
	}
	return 1
}

// Rivals reports whether the entry competes for a table's best value. To compete, the entry must be measured as a
// whole, have ended well, be private, and have the physical batches of the baseline. To compete, the entry must not be
// the baseline.
func (e *Entry) Rivals() bool {
	return !e.IsBaseline() && !e.NormsOnly() && e.Status == schemas.StatusOK && e.Source == schemas.Measured &&
		!e.Bounded() && !e.Smaller()
}

// Smaller reports whether the entry divides the baseline's batch into smaller physical batches. The method alone then
// does not explain the entry's peak.
func (e *Entry) Smaller() bool {
	if e.Baseline == nil || e.Fact("batch_size") != e.Baseline.Fact("batch_size") {
		return false
	}
	own, ok := physicalBatch(e.Cell)
	base, known := physicalBatch(e.Baseline)
	return ok && known && own < base
}

// physicalBatch returns the number of samples in one forward and backward pass.
func physicalBatch(c *compare.Cell) (n int64, known bool) {
	n, err := strconv.ParseInt(cmp.Or(c.Fact("physical_batch_size"), c.Fact("batch_size")), 10, 64)
	return n, err == nil
}

// Last returns the group with the largest values. Tables and figures that show only one place show this group.
func (p *Paper) Last() *Group { return &p.Groups[len(p.Groups)-1] }

// Baseline returns the group's entry that is a baseline, or nil if the group has none.
func (g *Group) Baseline() *Entry {
	for i := range g.Entries {
		if g.Entries[i].IsBaseline() {
			return &g.Entries[i]
		}
	}
	return nil
}

// Find returns the group's entry with a key, or nil if there is none.
func (g *Group) Find(key string) *Entry {
	for i := range g.Entries {
		if g.Entries[i].Key == key {
			return &g.Entries[i]
		}
	}
	return nil
}

// Find returns the first entry with a key in any group, or nil if there is none.
func (p *Paper) Find(key string) *Entry {
	for i := range p.Groups {
		if e := p.Groups[i].Find(key); e != nil {
			return e
		}
	}
	return nil
}

// Freed reports whether a table needs a column that compares peaks as if every loop freed .grad: it does if some entry
// keeps .grad between steps and its baseline does not, or the reverse.
func (p *Paper) Freed() bool {
	for _, g := range p.Groups {
		base := g.Baseline()
		if base == nil {
			continue
		}
		for i := range g.Entries {
			o := g.Entries[i].Overhead
			if o != nil && o.FreedDeltaBytes != nil && (g.Entries[i].Kept == nil) != (base.Kept == nil) {
				return true
			}
		}
	}
	return false
}
