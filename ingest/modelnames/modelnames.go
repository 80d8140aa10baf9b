package modelnames

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas/spool"
)

// Disambiguate puts the labels of ambiguous models into a journal: into the paths of its modules and the names of the
// agent's tags, as tables have them.
func Disambiguate(j *spool.Journal) {
	m := findModels(j)
	m.labelAmbiguousRoots()
	if len(m.tableLabels) > 0 {
		m.findSharedRootParameters(j)
		m.rename(j)
	}
}

// models has all models of a journal, and the labels that rename them.
type models struct {
	roots       []root
	rootOf      map[uint32]int    // index in roots of each module's model
	tableLabels map[string]string // label in tables, by the agent's label

	// sharedRootParameters are the names of parameters that both a labelled and an unlabelled model have in their root
	// modules.
	sharedRootParameters map[string]bool
	// anyRootParameters is true if an ambiguous model without the agent's label is known to have parameters in its root
	// module.
	anyRootParameters bool
}

// root is a model: its root module, its labels, and the paths of its modules.
type root struct {
	class      string
	agentLabel string          // label that the agent gave the model; "" = none
	tableLabel string          // label in tables; "" = the agent's names are kept
	paths      map[string]bool // paths of the model's modules, without the agent's label
	// rootParameters is true if the root module itself has parameters. For a model with the agent's label, it is true
	// only if a parameter's name also occurs without the label.
	rootParameters bool
}

// findModels finds the models of a journal. A model's modules are written in one frame, so they follow their root.
func findModels(j *spool.Journal) *models {
	m := &models{rootOf: map[uint32]int{}, tableLabels: map[string]string{}, sharedRootParameters: map[string]bool{}}
	parameters := parameterNames(j)
	seen := map[uint32]bool{}
	for i, info := range j.Modules {
		if seen[info.ID] { // the agent writes a module again when a fact about it is new
			continue
		}
		seen[info.ID] = true
		switch {
		case info.Path == "":
			m.roots = append(m.roots, root{class: info.Class, paths: map[string]bool{},
				rootParameters: info.ParameterBytes > 0})
		case info.First && isLabel(info.Path, info.Class) && isRoot(info.Path, j.Modules[i+1:], parameters):
			m.rootOf[info.ID] = len(m.roots)
			m.roots = append(m.roots, root{class: info.Class, agentLabel: info.Path, paths: map[string]bool{},
				rootParameters: hasRootParameters(info.Path, parameters)})
		case len(m.roots) > 0:
			m.addPart(info)
		}
	}
	return m
}

// addPart adds a module to the last model, if the module is a part of that model.
func (m *models) addPart(info spool.ModuleInfo) {
	r := &m.roots[len(m.roots)-1]
	path, isPart := info.Path, true
	if r.agentLabel != "" {
		path, isPart = strings.CutPrefix(info.Path, r.agentLabel+".")
	}
	if isPart {
		r.paths[path], m.rootOf[info.ID] = true, len(m.roots)-1
	}
}

// isLabel reports whether a path may be the agent's label of a model of this class.
func isLabel(path, class string) bool {
	rest, ok := strings.CutPrefix(path, class)
	return ok && (rest == "" || rest[0] == '#') && !strings.Contains(rest, ".")
}

// isRoot reports whether the first module of a frame, whose path looks like a label, is a model. The first module of a
// frame may also be a module that a model calls and that is no part of the model; the paths of the following modules
// then do not begin with its path. A model without parts is recognised by its parameters.
func isRoot(label string, next []spool.ModuleInfo, parameters map[string]bool) bool {
	if end := slices.IndexFunc(next, func(m spool.ModuleInfo) bool { return m.First }); end >= 0 {
		next = next[:end]
	}
	if slices.ContainsFunc(next, func(m spool.ModuleInfo) bool { return !strings.HasPrefix(m.Path, label+".") }) {
		return false
	}
	return len(next) > 0 || hasRootParameters(label, parameters)
}

// parameterNames returns the names of all models' parameters.
func parameterNames(j *spool.Journal) map[string]bool {
	names := map[string]bool{}
	for i := range j.Tags {
		if t := &j.Tags[i]; t.Kind == spool.TagParameter {
			names[j.Names[t.Name]] = true
		}
	}
	return names
}

// hasRootParameters reports whether a parameter of a root module has a name that occurs both with and without a
// label.
func hasRootParameters(label string, parameters map[string]bool) bool {
	for name := range parameters {
		if !strings.Contains(name, ".") && parameters[label+"."+name] {
			return true
		}
	}
	return false
}

// findSharedRootParameters finds the names of root parameters that occur both without a label and with the label of an
// ambiguous model.
func (m *models) findSharedRootParameters(j *spool.Journal) {
	names := map[string]bool{}
	for _, name := range j.Names {
		names[name] = true
	}
	for name := range names {
		if strings.Contains(name, ".") {
			continue
		}
		for label := range m.tableLabels {
			if names[label+"."+name] {
				m.sharedRootParameters[name] = true
			}
		}
	}
}
