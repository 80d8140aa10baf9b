package suite

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas/units"
	"github.com/dpsight/dpsight/schemas/where"
)

// largest is the most experiments of a suite. A matrix grows quickly, and ten thousand runs are surely a mistake.
const largest = 10_000

// A cell is an experiment as its entry in the file, or its place in the matrix, describes it.
type cell struct {
	given   map[string]scalar // values from the entry and the defaults
	own     []string          // names that the cell itself gives, in order
	name    string            // the user's name for the experiment, or ""
	bare    bool
	repeats int
	where   string // place in the file, for error messages
}

// An expansion makes the experiments of a suite's document.
type expansion struct {
	doc   *document
	scope *scope
	where []where.Condition
}

func newExpansion(d *document) (*expansion, error) {
	e := &expansion{doc: d, scope: newScope(d)}
	for _, f := range append(append(append([]fields{d.Defaults, d.Matrix, d.Baseline}, d.Experiments...), d.Include...),
		d.Exclude...) {
		if err := f.rename(e.scope.canonical); err != nil {
			return nil, err
		}
	}
	for _, f := range append(append([]fields{d.Defaults, d.Baseline, d.Environment}, d.Experiments...), d.Include...) {
		if err := f.single(); err != nil {
			return nil, err
		}
	}
	for _, f := range append([]fields{d.Baseline}, d.Exclude...) {
		for _, one := range f {
			if !e.scope.has(one.name) {
				return nil, fmt.Errorf("line %d: %w", one.line, e.scope.unknown(one.name))
			}
		}
	}
	for _, text := range d.Where {
		c, err := where.Parse(text, words{e.scope})
		if err != nil {
			return nil, fmt.Errorf("where %q: %w", text, err)
		}
		e.where = append(e.where, c)
	}
	return e, nil
}

// cells returns the cells of the matrix and of the experiments, and then those to which exclude and where do not apply.
// In the matrix the first name varies slowest.
func (e *expansion) cells() (subject, included []cell, err error) {
	size := 1
	for _, f := range e.doc.Matrix {
		if len(f.values) == 0 {
			return nil, nil, fmt.Errorf("line %d: the list of %s is empty", f.line, f.name)
		}
		if f.name == nameKey || f.name == repeatsKey {
			return nil, nil, fmt.Errorf("line %d: %s cannot vary in the matrix", f.line, f.name)
		}
		if size *= len(f.values); size > largest {
			return nil, nil, fmt.Errorf("the matrix has more than %d cells", largest)
		}
	}
	if len(e.doc.Matrix) > 0 {
		for i := range size {
			entry := make(fields, len(e.doc.Matrix))
			for k := len(entry) - 1; k >= 0; k-- {
				f := e.doc.Matrix[k]
				entry[k] = field{name: f.name, values: f.values[i%len(f.values):][:1], line: f.line}
				i /= len(f.values)
			}
			c, err := e.cell(entry)
			if err != nil {
				return nil, nil, err
			}
			c.where = "the matrix"
			subject = append(subject, c)
		}
	}
	for i, entry := range e.doc.Experiments {
		c, err := e.cell(entry)
		if err != nil {
			return nil, nil, fmt.Errorf("experiment %d: %w", i+1, err)
		}
		c.where = fmt.Sprintf("experiment %d", i+1)
		subject = append(subject, c)
	}
	for i, entry := range e.doc.Include {
		c, err := e.cell(entry)
		if err != nil {
			return nil, nil, fmt.Errorf("include %d: %w", i+1, err)
		}
		c.where = fmt.Sprintf("include %d", i+1)
		included = append(included, c)
	}
	return subject, included, nil
}

func (e *expansion) cell(entry fields) (cell, error) {
	c := cell{given: map[string]scalar{}, repeats: max(1, int(e.doc.Repeats))}
	for _, f := range append(append(fields{}, e.doc.Defaults...), entry...) {
		v := f.values[0]
		switch f.name {
		case nameKey:
			c.name = v.text
		case bareName:
			b, ok := truth(v.text)
			if !ok {
				return c, fmt.Errorf("bare must be true or false, not %q", v.text)
			}
			c.bare = b
		case repeatsKey:
			n, err := parseCount(v.text)
			if err != nil {
				return c, fmt.Errorf("repeats %w", err)
			}
			c.repeats = int(n)
		default:
			c.given[f.name] = v
		}
	}
	for _, f := range entry {
		c.own = append(c.own, f.name)
	}
	return c, nil
}

// leftOut reports whether exclude or where removes an experiment from the suite.
func (e *expansion) leftOut(params map[string]any) bool {
	for _, entry := range e.doc.Exclude {
		matched := len(entry) > 0
		for _, f := range entry {
			matched = matched && slices.ContainsFunc(f.values, func(v scalar) bool {
				return e.scope.is(params, f.name, v.typed())
			})
		}
		if matched {
			return true
		}
	}
	for _, c := range e.where {
		if c(params) == where.Fails {
			return true
		}
	}
	return false
}

// expand returns the experiments, and the number of those left out. An exclude entry can remove an experiment whose
// options are refused. That is how a suite leaves out a method that does not support a model.
func (e *expansion) expand() ([]*Experiment, int, error) {
	subject, included, err := e.cells()
	if err != nil {
		return nil, 0, err
	}
	if len(subject)+len(included) == 0 {
		return nil, 0, errors.New("the suite has no experiments")
	}
	var list []*Experiment
	out := 0
	for i, c := range append(subject, included...) {
		params, err := e.scope.resolve(c.given)
		known := params
		if err != nil {
			known = typedAll(c.given)
		}
		if i < len(subject) && e.leftOut(with(known, c.bare)) {
			out++
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", c.where, cellError(c, err))
		}
		x := &Experiment{Params: params, Bare: c.bare, Repeats: c.repeats, cell: c}
		if x.Command, err = e.command(c.given, x.Bare); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", c.where, err)
		}
		if c.name == "" && e.doc.Names != "" {
			if x.cell.name, err = e.fill("names", e.doc.Names, masked(c.given), x.Bare); err != nil {
				return nil, 0, fmt.Errorf("%s: %w", c.where, err)
			}
			if x.Bare {
				x.cell.name += "-" + bareName
			}
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return nil, 0, fmt.Errorf("exclude and where leave none of the suite's %s",
			units.Plural(out, "experiment", "experiments"))
	}
	return list, out, nil
}

// masked returns values with secrets masked, as they may be shown.
func masked(given map[string]scalar) map[string]scalar {
	texts := map[string]any{}
	for name, v := range given {
		texts[name] = v.text
	}
	out := map[string]scalar{}
	for name, text := range mask.Gather(nil, nil, texts).Params(texts) {
		out[name] = scalar{text.(string), given[name].tag}
	}
	return out
}

// cellError adds the name of the cell to its error.
func cellError(c cell, err error) error {
	if c.where != "the matrix" || len(c.given) == 0 {
		return err
	}
	text, shown := "", masked(c.given)
	for _, name := range c.own {
		if v, ok := shown[name]; ok {
			text += fmt.Sprintf(", %s %s", name, v.text)
		}
	}
	return fmt.Errorf("%w (%s)", err, text[2:])
}

// merged joins equal experiments: each further one becomes a further repetition.
func merged(list []*Experiment) ([]*Experiment, error) {
	var out []*Experiment
	index := map[string]*Experiment{}
	for _, x := range list {
		first := index[x.Key]
		switch {
		case first == nil:
			index[x.Key] = x
			out = append(out, x)
		case !maps.Equal(first.Params, x.Params):
			// Parameters that are masked as secrets are in no key and in no file, so the runs could not be
			// distinguished.
			return nil, fmt.Errorf("two experiments differ only in parameters that are masked as secrets, by their "+
				"names: give %s another name", differing(first.Params, x.Params))
		default:
			first.Repeats += x.Repeats
		}
	}
	return out, nil
}

// differing returns the name of a parameter whose values differ between two experiments.
func differing(a, b map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return name
		}
	}
	return ""
}
