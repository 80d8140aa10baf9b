package grouping

import (
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// A Dimension is a property of blocks by which a breakdown groups bytes.
type Dimension string

// The dimensions.
const (
	DimensionCategory Dimension = "category"
	DimensionModule   Dimension = "module" // path of the module
	DimensionClass    Dimension = "class"  // class of the module
	DimensionRole     Dimension = "role"   // role of the module
	DimensionPhase    Dimension = "phase"  // phase in which the block was born
	DimensionStep     Dimension = "step"   // step in which the block was born
	DimensionOp       Dimension = "op"     // operation that keeps the block for backward, by autograd's name, where known
	DimensionDType    Dimension = "dtype"  // dtype of the tensors that were tagged in the block
	DimensionSize     Dimension = "size"   // size of the request, in powers of two
	DimensionStack    Dimension = "stack"  // stack that asked for the block, where recorded
	DimensionLine     Dimension = "line"   // line of the script that asked for the block, where known
	// DimensionName is the name of the tensor: of the parameter that it is or belongs to, or of the autograd node that
	// holds it.
	DimensionName Dimension = "name"
	// DimensionHolder is what keeps the block, as the agent found it at the end of instrumented steps, at a failed
	// request and at exit.
	DimensionHolder Dimension = "holder"
)

// Dimensions lists every dimension.
var Dimensions = []Dimension{DimensionCategory, DimensionModule, DimensionClass, DimensionRole, DimensionPhase,
	DimensionStep,
	DimensionOp, DimensionDType, DimensionSize, DimensionStack, DimensionLine, DimensionName, DimensionHolder}

// maxDimensions is how many dimensions a breakdown can combine, since a table has rows and columns.
const maxDimensions = 2

// ParseDimensions reads one dimension or two different ones with a comma between: "category,module".
func ParseDimensions(s string) ([]Dimension, error) {
	var out []Dimension
	for part := range strings.SplitSeq(s, ",") {
		d := Dimension(strings.TrimSpace(part))
		if !slices.Contains(Dimensions, d) {
			return nil, fmt.Errorf("no dimension %q; there are %s", d, joined(Dimensions))
		}
		if slices.Contains(out, d) {
			return nil, fmt.Errorf("dimension %s is given twice", d)
		}
		out = append(out, d)
	}
	if len(out) > maxDimensions {
		return nil, fmt.Errorf("%d dimensions are given: at most %d can be crossed", len(out), maxDimensions)
	}
	return out, nil
}

func joined(list []Dimension) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = string(d)
	}
	return strings.Join(words, ", ")
}

// NeedsModule reports whether the dimension is a property of the block's module.
func (d Dimension) NeedsModule() bool {
	return d == DimensionModule || d == DimensionClass || d == DimensionRole
}

// needsOwner reports whether the dimension depends on the owner under which the block counts.
func (d Dimension) needsOwner() bool {
	return d == DimensionOp || d == DimensionName || d == DimensionHolder
}

// A dimensionKey is a block's value of one dimension. The zero key stands for an unknown value.
type dimensionKey struct {
	Text  string
	place int64 // values are sorted by it, then by bytes
}

// The values that stand for a step or a phase of blocks that have none.
const (
	BeforeRecording = "before recording"
	BetweenWindows  = "between windows"
	beforeFirstStep = "before the first step"
)

// Unseen returns the value that replaces the birth of a block without a birth event; "" if the block has a birth event.
// A block born between two windows of recorded steps has, as its birth, the event at which the later window opened, and
// no phase.
func Unseen(a *schemas.Allocation) string {
	switch {
	case a.AllocSeq == 0:
		return BeforeRecording
	case a.Phase == "":
		return BetweenWindows
	}
	return ""
}

// Keyer finds the values that the blocks of one device have in one dimension.
type Keyer struct {
	Dimension
	By     *By
	Phases map[string]int64 // phases by name, numbered from 1 in the order of their first occurrence
	frames map[int64][]schemas.StackFrame
	lines  map[int64]*schemas.Line
	held   *memory.Holders
	Folds  folds
}

func NewKeyer(in *schemas.Tables, d Dimension, by *By, p identity.Place) *Keyer {
	k := &Keyer{Dimension: d, By: by, Phases: map[string]int64{}}
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Rank == p.Rank && f.Device == p.Device && k.Phases[f.Phase] == 0 {
			k.Phases[f.Phase] = int64(len(k.Phases)) + 1
		}
	}
	switch d {
	case DimensionModule, DimensionName:
		k.Folds = FoldsOf(in.Modules)
	case DimensionStack:
		k.frames = FramesOf(in, p.Rank)
	case DimensionLine:
		k.lines = LinesOf(in, p.Rank)
	case DimensionHolder:
		k.held = memory.NewHolders(in, p)
	}
	return k
}

// Key returns a block's value. category is the category under which the bytes count, m the block's module or nil, and o
// the owner under which the block counts or nil.
func (k *Keyer) Key(a *schemas.Allocation, category int, m *schemas.Module, o *schemas.Owner) dimensionKey {
	switch k.Dimension {
	case DimensionCategory:
		return dimensionKey{schemas.Categories[category], int64(category)}
	case DimensionPhase:
		if text := Unseen(a); text != "" {
			return dimensionKey{Text: text}
		}
		return dimensionKey{a.Phase, k.Phases[a.Phase]}
	case DimensionStep:
		switch text := Unseen(a); {
		case text == BeforeRecording:
			return dimensionKey{text, -2}
		case text != "":
			return dimensionKey{text, math.MaxInt64}
		case a.Step < 0:
			return dimensionKey{beforeFirstStep, -1}
		}
		return dimensionKey{strconv.FormatInt(a.Step, 10), a.Step}
	case DimensionOp:
		return dimensionKey{Text: opOf(a, o)}
	case DimensionDType:
		return dimensionKey{Text: a.DType}
	case DimensionSize:
		return sizeClass(a.RequestedBytes)
	case DimensionStack:
		if k.By.FullStack {
			return dimensionKey{Text: FullStackText(k.frames[a.Stack], k.By.Depth)}
		}
		return dimensionKey{Text: StackText(k.frames[a.Stack], k.By.Depth, true)}
	case DimensionLine:
		return dimensionKey{Text: LineText(k.lines[a.Line])}
	case DimensionName:
		return dimensionKey{Text: k.name(m, o)}
	case DimensionHolder:
		return dimensionKey{Text: k.holder(a, o)}
	}
	if m == nil {
		return dimensionKey{}
	}
	switch k.Dimension {
	case DimensionClass:
		return dimensionKey{Text: m.Class}
	case DimensionRole:
		return dimensionKey{Text: m.Role}
	}
	return dimensionKey{Text: k.path(m, k.By.Depth)}
}

// path returns the first depth names of a module's path. The path is folded if By asks for that.
func (k *Keyer) path(m *schemas.Module, depth int) string {
	if path := ModulePath(m, depth); !k.By.Fold {
		return path
	} else {
		return k.Folds.Fold(path)
	}
}

// name returns the owner's name for the tensor: a parameter's name, also for its gradient and optimizer state, or the
// script's name. A tensor that autograd holds has the name of its autograd node. Many nodes have the same name, so name
// puts the module's path before it.
func (k *Keyer) name(m *schemas.Module, o *schemas.Owner) string {
	switch {
	case o == nil || o.Name == "":
		return ""
	case schemas.NamesParameters(o.Category) && k.By.Fold:
		return k.Folds.Fold(o.Name)
	case m != nil && o.Category == schemas.Activations && autogradNode.MatchString(o.Name):
		return k.path(m, 0) + " " + o.Name
	}
	return o.Name
}

// holder returns what keeps a block, in the words of [holderOf].
func (k *Keyer) holder(a *schemas.Allocation, o *schemas.Owner) string {
	category := schemas.Other
	if o != nil {
		category = o.Category
	}
	return holderOf(k.held.Of(a), category, k.By.Fold)
}

// autogradNode matches the name of a node of autograd's graph, such as AddmmBackward0. A tag that a script sets may
// have any name.
var autogradNode = regexp.MustCompile(`Backward[0-9]*$`)

// NotAnActivation is the op of blocks that are known by tags or lifetime to be no activations: parameters, gradients
// and temporaries are not kept for backward.
const NotAnActivation = "not an activation"

// opOf returns the operation of a block: the operation in column op of the allocations, else the autograd node that
// holds the block for backward. An activation that several nodes hold counts under the first node that the walk over
// the graph found.
func opOf(a *schemas.Allocation, o *schemas.Owner) string {
	switch {
	case a.Op != "":
		return a.Op
	case o == nil || o.Category == schemas.Other || o.Category == schemas.Untraced:
		return ""
	case o.Category != schemas.Activations && o.Evidence != schemas.ByPhase:
		return NotAnActivation
	case o.Category == schemas.Activations && autogradNode.MatchString(o.Name):
		return o.Name
	}
	return ""
}

// ModulePath returns the first depth names of a module's path, or all names if depth is 0. For a root module, whose
// path is empty, it returns the class.
func ModulePath(m *schemas.Module, depth int) string {
	if m.Path == "" {
		return "(" + m.Class + ")"
	}
	names := strings.Split(m.Path, ".")
	if depth > 0 && len(names) > depth {
		names = names[:depth]
	}
	return strings.Join(names, ".")
}

// smallestSize is the allocator's rounding, in bytes. All requests up to this size share one size class.
const smallestSize = 512

// sizeClass returns the range between two powers of two that a request lies in: "16–32 MiB". The largest sizes come
// first.
func sizeClass(bytes int64) dimensionKey {
	if bytes < smallestSize {
		return dimensionKey{Text: "under 512 B", place: -1}
	}
	n := bits.Len64(uint64(bytes)) - 1
	from, unit := sizeWords(n)
	to, next := sizeWords(n + 1)
	if unit != next {
		from += " " + unit
	}
	return dimensionKey{from + "–" + to + " " + next, -int64(n)}
}

// sizeWords returns 1<<n bytes as a number and its binary unit.
func sizeWords(n int) (number, unit string) {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	u := min(n/10, len(units)-1)
	return strconv.FormatInt(1<<(n-10*u), 10), units[u]
}

// Numbered reports whether a module's path contains no name: a number alone says nothing in a sentence.
func Numbered(path string) bool { return strings.Trim(path, "0123456789.") == "" }

// ModuleWords returns a module's name for sentences. ModuleWords adds the class if the path is only a number, as in an
// nn.Sequential.
func ModuleWords(m *schemas.Module) string {
	if path := ModulePath(m, 0); !Numbered(path) {
		return path
	}
	return "module " + m.Path + " (" + m.Class + ")"
}
