package modelnames

import (
	"strings"

	"github.com/dpsight/dpsight/schemas/spool"
)

// rename puts the labels of tables into a journal's modules and into the names of the agent's tags. A changed name gets
// a new id, since the script's own tags, phases and marks may use the old id, and keep the old name.
func (m *models) rename(j *spool.Journal) {
	for i := range j.Modules {
		info := &j.Modules[i]
		info.Path = m.modulePath(info.ID, info.Path)
	}
	free := uint32(0)
	for number := range j.Names {
		free = max(free, number+1)
	}
	renumbered := map[uint32]uint32{} // new number of each renamed name, by its old number
	for i := range j.Tags {
		t := &j.Tags[i]
		before, ok := j.Names[t.Name]
		if !ok || t.Kind == spool.TagUser {
			continue
		}
		number, done := renumbered[t.Name]
		if !done {
			number = t.Name
			if after := m.tensorName(before); after != before {
				number, j.Names[free] = free, after
				free++
			}
			renumbered[t.Name] = number
		}
		t.Name = number
	}
}

// modulePath returns a module's path in tables. A root module without the agent's label keeps its empty path.
func (m *models) modulePath(id uint32, path string) string {
	i, ok := m.rootOf[id]
	if !ok || m.roots[i].tableLabel == "" {
		return path
	}
	r := &m.roots[i]
	if r.agentLabel == "" {
		return r.tableLabel + "." + path
	}
	return r.tableLabel + strings.TrimPrefix(path, r.agentLabel)
}

// tensorName returns the name that tables have for a tensor that belongs to a model.
func (m *models) tensorName(name string) string {
	head, rest, _ := strings.Cut(name, ".")
	if label, ok := m.tableLabels[head]; ok && rest != "" {
		return label + "." + rest
	}
	for i := range m.roots {
		r := &m.roots[i]
		if r.tableLabel == "" || r.agentLabel != "" {
			continue
		}
		ofRoot := m.sharedRootParameters[head] && (r.rootParameters || !m.anyRootParameters)
		if ofRoot || r.hasPathBefore(name) {
			return r.tableLabel + "." + name
		}
	}
	return name
}

// hasPathBefore reports whether a name begins with the path of a module of the model: "main.0.weight" with "main.0".
func (r *root) hasPathBefore(name string) bool {
	for at := strings.LastIndexByte(name, '.'); at > 0; at = strings.LastIndexByte(name[:at], '.') {
		if r.paths[name[:at]] {
			return true
		}
	}
	return false
}
