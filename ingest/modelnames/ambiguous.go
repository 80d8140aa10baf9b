package modelnames

import (
	"fmt"
	"slices"
)

// labelAmbiguousRoots gives each ambiguous model its label in tables.
func (m *models) labelAmbiguousRoots() {
	byClass := map[string][]*root{}
	for i, ambiguous := range m.ambiguousRoots() {
		if r := &m.roots[i]; ambiguous {
			byClass[r.class] = append(byClass[r.class], r)
		}
	}
	for _, roots := range byClass {
		numberSameClass(roots)
		for _, r := range roots {
			if r.agentLabel != "" {
				m.tableLabels[r.agentLabel] = r.tableLabel
			} else if r.rootParameters {
				m.anyRootParameters = true
			}
		}
	}
}

// ambiguousRoots reports, for each model, whether another model has modules or parameters of the same names.
func (m *models) ambiguousRoots() []bool {
	ambiguous := make([]bool, len(m.roots))
	for i := range m.roots {
		r := &m.roots[i]
		ambiguous[i] = r.agentLabel != ""
		for k := i + 1; k < len(m.roots) && !ambiguous[i]; k++ { // the agent labels the later of two models
			later := &m.roots[k]
			ambiguous[i] = later.agentLabel != "" &&
				(r.sharesNames(later) || r.rootParameters && m.labelledForRootParameters(k))
		}
	}
	// The last trial of a search may end before the agent has labelled any of its models.
	for i := range m.roots {
		for k := 0; k < i && !ambiguous[i]; k++ {
			ambiguous[i] = ambiguous[k] && m.roots[i].sameModelRecreated(&m.roots[k])
		}
	}
	return ambiguous
}

// numberSameClass labels models of the same class, given in the order of their first calls. If there are several
// models, their labels have numbers.
func numberSameClass(roots []*root) {
	numbers, last := make([]int, len(roots)), 0
	for i, r := range roots {
		if before := slices.IndexFunc(roots[:i], r.sameModelRecreated); before >= 0 {
			numbers[i] = numbers[before]
			continue
		}
		last++
		numbers[i] = last
	}
	for i, r := range roots {
		r.tableLabel = r.class
		if last > 1 {
			r.tableLabel = fmt.Sprintf("%s#%d", r.class, numbers[i])
		}
	}
}

// labelledForRootParameters reports whether the agent can have labelled model k only because of parameters of its root
// module, and all earlier models that may have parameters of the same names have the same class.
func (m *models) labelledForRootParameters(k int) bool {
	labelled := &m.roots[k]
	class := "" // class of the earlier models that have parameters in the root module
	for i := range m.roots[:k] {
		r := &m.roots[i]
		if r.agentLabel != "" {
			continue
		}
		if r.sharesNames(labelled) {
			return false
		}
		if r.rootParameters {
			if class != "" && r.class != class {
				return false
			}
			class = r.class
		}
	}
	return labelled.rootParameters && class != ""
}

// sameModelRecreated reports whether two models have the same names because the earlier model had been deleted when the
// later one was created.
func (r *root) sameModelRecreated(o *root) bool {
	if r.class != o.class || r.agentLabel != o.agentLabel {
		return false
	}
	onlyRoots := r.rootParameters && o.rootParameters && len(r.paths) == 0 && len(o.paths) == 0
	return r.agentLabel != "" || r.sharesNames(o) || onlyRoots
}

// sharesNames reports whether two models both have a module with the same path.
func (r *root) sharesNames(o *root) bool {
	for path := range r.paths {
		if o.paths[path] {
			return true
		}
	}
	return false
}
