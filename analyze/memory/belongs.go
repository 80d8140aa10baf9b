package memory

import (
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// ModuleBytes divides the allocated bytes by how each block's module is known.
type ModuleBytes struct {
	OwnerBytes int64 `json:"owner_bytes"` // bytes by the module in the tag or rule under which the block is counted
	NameBytes  int64 `json:"name_bytes"`  // bytes by the parameter that the block's owner names
	BirthBytes int64 `json:"birth_bytes"` // bytes by the module that ran when the block was allocated
	NoneBytes  int64 `json:"none_bytes"`  // bytes without a known module
	// SharedBytes are the bytes that all modules share: see [IsSharedByModules].
	SharedBytes int64 `json:"shared_bytes"`
}

// Any reports whether any block's module is known.
func (m *ModuleBytes) Any() bool { return m.OwnerBytes+m.NameBytes+m.BirthBytes > 0 }

// IsSharedByModules stands for the module of library workspaces. torch allocates a workspace for a thread and stream
// when the first matrix product needs one, and all later products use it. So the module that was called first is not
// charged for the workspace. A workspace that is allocated and released within one call belongs to that call's module.
var IsSharedByModules = &schemas.Module{Path: schemas.SharedByModules, Class: schemas.SharedByModules,
	Role: schemas.SharedByModules}

// isShared reports whether a block that counts under owner o is a workspace that outlives the call that allocated it.
func isShared(a *schemas.Allocation, o *schemas.Owner) bool {
	return o.Category == schemas.Workspace && o.Evidence != schemas.Tagged && a.FreeRequestedSeq != a.AllocSeq+1
}

// A ModuleIndex finds the modules of one rank.
type ModuleIndex struct {
	ByID map[int64]*schemas.Module
	// byPath has nil for a path that modules of several classes have, as when two models each have a "main.0".
	byPath map[string]*schemas.Module
	root   *schemas.Module // the only root that has parameters of its own
}

func NewModuleIndex(in *schemas.Tables, rank int32) *ModuleIndex {
	x := &ModuleIndex{ByID: map[int64]*schemas.Module{}, byPath: map[string]*schemas.Module{}}
	roots := 0
	for i := range in.Modules {
		m := &in.Modules[i]
		if m.Rank != rank {
			continue
		}
		x.ByID[m.ID] = m
		if m.Path == "" {
			if m.ParameterBytes > 0 {
				roots++
				x.root = m
			}
			continue
		}
		if other, ok := x.byPath[m.Path]; !ok {
			x.byPath[m.Path] = m
		} else if other != nil && (other.Class != m.Class || other.Role != m.Role) {
			x.byPath[m.Path] = nil
		}
	}
	if roots != 1 {
		x.root = nil
	}
	return x
}

// Enclosing returns the nearest module that contains a parameter's name: blocks.3.mlp.up for
// blocks.3.mlp.up.weight.exp_avg. Enclosing returns nil if no module contains the name, or if several might.
func (x *ModuleIndex) Enclosing(name string) *schemas.Module {
	for path := name; ; {
		if m, ok := x.byPath[path]; ok {
			return m
		}
		cut := strings.LastIndexByte(path, '.')
		if cut < 0 {
			return x.root
		}
		path = path[:cut]
	}
}

// Module returns the module that block i counts under just after event seq, and the field of m to which the block's
// bytes belong. The owner decides first: a parameter's gradient belongs to the parameter's module, even if another
// module's backward allocated it.
func (x *ModuleIndex) Module(l *Ledger, i int, seq int64, m *ModuleBytes) (*schemas.Module, *int64) {
	if o := l.Owner(i, seq); o != nil {
		if isShared(l.Allocs[i], o) {
			return IsSharedByModules, &m.SharedBytes
		}
		if found := x.ByID[o.Module]; found != nil {
			return found, &m.OwnerBytes
		}
		if o.Name != "" && schemas.NamesParameters(o.Category) {
			if found := x.Enclosing(o.Name); found != nil {
				return found, &m.NameBytes
			}
		}
	}
	if found := x.ByID[l.Allocs[i].Module]; found != nil {
		return found, &m.BirthBytes
	}
	return nil, &m.NoneBytes
}
