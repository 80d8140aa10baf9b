package ingest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas/spool"
)

// labels are what the names of models begin with where several have the same names: a teacher's and its student's, a
// GAN's two halves that are both a "main". The agent gives the model that is called later its class
// ("Generator.main.0"): when the first one was called there was nothing to tell it apart from, and what was written is
// written. Here both are known, and the first gets its own: in a table "main.0" beside "Generator.main.0" reads as if
// the one were the other's, or of neither. Of several models of one class all are numbered, in the order of their first
// calls. Models that never lived at once, as those of several trials, may have one name for all that they have: what
// they are called cannot tell them apart, and they stay one in tables. Parameters that lie in no part of a model come
// without their model: where these alone have one name, and several classes have such parameters, it is not known whose
// they are, and the first model's stay without a label.
type labels struct {
	roots []labelledRoot
	of    map[uint32]int    // module → its place in roots
	old   map[string]string // the agent's label → what stands in tables
	first map[string]bool   // direct names of the model without a label that another has too
	known bool              // whether some model that gets a label here is known to have direct parameters
}

type labelledRoot struct {
	class string
	label string          // the agent's; "" = none
	new   string          // what stands in tables; "" = as it is
	paths map[string]bool // of its modules, without the label
	// it has parameters that lie in no part of it; with a label, whose names stand without it too
	direct bool
}

// labelsOf finds the models of a journal whose names are others' too.
func labelsOf(j *spool.Journal) *labels {
	l := &labels{of: map[uint32]int{}, old: map[string]string{}, first: map[string]bool{}}
	parameters := parameterNames(j)
	seen := map[uint32]bool{}
	for i, m := range j.Modules {
		if seen[m.ID] { // it is written again where there is news of it
			continue
		}
		seen[m.ID] = true
		switch {
		case m.Path == "":
			l.roots = append(l.roots, labelledRoot{class: m.Class, paths: map[string]bool{},
				direct: m.ParameterBytes > 0})
			continue
		case m.First && isLabel(m.Path, m.Class) && ofAModel(m.Path, j.Modules[i+1:], parameters):
			l.of[m.ID] = len(l.roots)
			l.roots = append(l.roots, labelledRoot{class: m.Class, label: m.Path, paths: map[string]bool{},
				direct: twice(m.Path, parameters)})
			continue
		case len(l.roots) == 0:
			continue
		}
		// A model's modules are written in one go, so that they follow it.
		r := &l.roots[len(l.roots)-1]
		path, ours := m.Path, true
		if r.label != "" {
			path, ours = strings.CutPrefix(m.Path, r.label+".")
		}
		if ours {
			r.paths[path], l.of[m.ID] = true, len(l.roots)-1
		}
	}
	l.choose()
	if len(l.old) > 0 {
		l.direct(j)
	}
	return l
}

// ofAModel reports whether the path of a frame's first module is a model's label, and not what a module is called that
// was called inside another model without being its part: the parts of that have no label before theirs. A model
// without parts has its parameters instead.
func ofAModel(label string, next []spool.ModuleInfo, parameters map[string]bool) bool {
	if end := slices.IndexFunc(next, func(m spool.ModuleInfo) bool { return m.First }); end >= 0 {
		next = next[:end]
	}
	if slices.ContainsFunc(next, func(m spool.ModuleInfo) bool { return !strings.HasPrefix(m.Path, label+".") }) {
		return false
	}
	return len(next) > 0 || twice(label, parameters)
}

// parameterNames are the names of all models' parameters.
func parameterNames(j *spool.Journal) map[string]bool {
	names := map[string]bool{}
	for i := range j.Tags {
		if t := &j.Tags[i]; t.Kind == spool.TagParameter {
			names[j.Names[t.Name]] = true
		}
	}
	return names
}

// twice reports whether a parameter that lies in no part of its model stands with a label and without.
func twice(label string, parameters map[string]bool) bool {
	for name := range parameters {
		if !strings.Contains(name, ".") && parameters[label+"."+name] {
			return true
		}
	}
	return false
}

// isLabel reports whether a path is what the agent calls a model whose names another has: its class, numbered if need
// be.
func isLabel(path, class string) bool {
	rest, ok := strings.CutPrefix(path, class)
	return ok && (rest == "" || rest[0] == '#') && !strings.Contains(rest, ".")
}

// choose gives labels to the models without one whose paths a labelled one has, and numbers to those of one class.
func (l *labels) choose() {
	collides := make([]bool, len(l.roots))
	for i := range l.roots {
		r := &l.roots[i]
		collides[i] = r.label != ""
		for k := i + 1; k < len(l.roots) && !collides[i]; k++ { // the labelled one comes later
			collides[i] = l.roots[k].label != "" && (r.shares(&l.roots[k]) || r.direct && l.directly(k))
		}
	}
	of := map[string][]*labelledRoot{} // by class
	for i := range l.roots {
		r := &l.roots[i]
		for k := 0; k < i && !collides[i]; k++ { // in the last trial there may be none
			collides[i] = collides[k] && r.namesake(&l.roots[k])
		}
		if collides[i] {
			of[r.class] = append(of[r.class], r)
		}
	}
	for class, roots := range of {
		numbers, n := make([]int, len(roots)), 0
		for i, r := range roots {
			same := slices.IndexFunc(roots[:i], r.namesake)
			if same >= 0 {
				numbers[i] = numbers[same]
				continue
			}
			n++
			numbers[i] = n
		}
		for i, r := range roots {
			if r.new = class; n > 1 {
				r.new = fmt.Sprintf("%s#%d", class, numbers[i])
			}
			if r.label != "" {
				l.old[r.label] = r.new
			}
			l.known = l.known || r.direct && r.label == ""
		}
	}
}

// directly reports whether a labelled model has its label for its direct parameters, and those before it that may have
// the same are all of one class: trials of one model.
func (l *labels) directly(k int) bool {
	class := ""
	for i := range l.roots[:k] {
		r := &l.roots[i]
		switch {
		case r.label != "":
		case r.shares(&l.roots[k]), r.direct && class != "" && r.class != class:
			return false
		case r.direct:
			class = r.class
		}
	}
	return l.roots[k].direct && class != ""
}

// namesake reports whether what both have is called the same: models of which the one was gone when the other was
// called.
func (r *labelledRoot) namesake(o *labelledRoot) bool {
	alone := r.direct && o.direct && len(r.paths) == 0 && len(o.paths) == 0
	return r.class == o.class && r.label == o.label && (r.label != "" || r.shares(o) || alone)
}

// shares reports whether both have some path.
func (r *labelledRoot) shares(o *labelledRoot) bool {
	for path := range r.paths {
		if o.paths[path] {
			return true
		}
	}
	return false
}

// direct finds the names of what lies in no module of the first model but in the model itself, and in another one too.
func (l *labels) direct(j *spool.Journal) {
	names := map[string]bool{}
	for _, name := range j.Names {
		names[name] = true
	}
	for name := range names {
		if strings.Contains(name, ".") {
			continue
		}
		for label := range l.old {
			l.first[name] = l.first[name] || names[label+"."+name]
		}
	}
}

// path is a module's as it stands in tables. A root without a label keeps its empty one.
func (l *labels) path(id uint32, path string) string {
	i, ok := l.of[id]
	switch {
	case !ok || l.roots[i].new == "":
		return path
	case l.roots[i].label == "":
		return l.roots[i].new + "." + path
	}
	return l.roots[i].new + strings.TrimPrefix(path, l.roots[i].label)
}

// name is that of a tensor of a model as it stands in tables.
func (l *labels) name(name string) string {
	head, rest, _ := strings.Cut(name, ".")
	if label, ok := l.old[head]; ok && rest != "" {
		return label + "." + rest
	}
	for i := range l.roots {
		r := &l.roots[i]
		if r.new == "" || r.label != "" {
			continue
		}
		if l.first[head] && (r.direct || !l.known) {
			return r.new + "." + name
		}
		for at := strings.LastIndexByte(name, '.'); at > 0; at = strings.LastIndexByte(name[:at], '.') {
			if r.paths[name[:at]] {
				return r.new + "." + name
			}
		}
	}
	return name
}

// relabel puts the labels into a journal's modules and into what the agent's tags are called. Names that change get
// numbers of their own: the script's tags, phases and marks may be called the same, and keep their names.
func (l *labels) relabel(j *spool.Journal) {
	if len(l.old) == 0 {
		return
	}
	for i := range j.Modules {
		m := &j.Modules[i]
		m.Path = l.path(m.ID, m.Path)
	}
	free := uint32(0)
	for number := range j.Names {
		free = max(free, number+1)
	}
	numbers := map[uint32]uint32{} // of names, old to new
	for i := range j.Tags {
		t := &j.Tags[i]
		old, ok := j.Names[t.Name]
		if !ok || t.Kind == spool.TagUser {
			continue
		}
		number, done := numbers[t.Name]
		if !done {
			number = t.Name
			if name := l.name(old); name != old {
				number, j.Names[free] = free, name
				free++
			}
			numbers[t.Name] = number
		}
		t.Name = number
	}
}
