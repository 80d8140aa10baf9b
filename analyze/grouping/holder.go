package grouping

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// The values that stand for holders without a path.
const (
	HeldByCpp      = "C++ alone"
	HeldByTraining = "model and optimizer"
)

// keptByTraining lists the categories that already say who keeps a block.
var keptByTraining = []schemas.Category{schemas.Parameters, schemas.Buffers, schemas.Gradients, schemas.OptimizerState}

// holderOf returns the path of what keeps a block, or "" if unknown. If fold is true, all entries of one list have the
// same path.
func holderOf(h *memory.Holder, category schemas.Category, fold bool) string {
	switch {
	case slices.Contains(keptByTraining, category):
		return HeldByTraining
	case h == nil:
		return ""
	case h.Kind == schemas.HeldByCpp:
		return HeldByCpp
	case fold:
		return FoldHolder(h.Path)
	}
	return h.Path
}

// HolderName returns a name of the holder that many blocks can share: the entries of one list have the same name, and
// so have the tensors that one graph saves.
func HolderName(h *memory.Holder) string {
	if h.Kind == schemas.HeldByCpp {
		return HeldByCpp
	}
	path, _, saved := strings.Cut(h.Path, arrow+graph)
	if saved { // it does not matter which node saved the tensor
		path += arrow + graph
	}
	return FoldHolder(path)
}

// FrameOf returns the part of a holder's path that names a function's frame, without the variable in it and what
// follows.
func FrameOf(path string) string {
	path, _, _ = strings.Cut(path, arrow+graph)
	if at := strings.LastIndex(path, arrow); at >= 0 {
		path = path[:at]
	}
	return FoldHolder(path)
}

// HolderRoot returns the name that a holder's path begins with: "global kept[*]", "local x of train()".
func HolderRoot(path string) string {
	root, _, _ := strings.Cut(path, arrow)
	root, _, _ = strings.Cut(root, " (") // cuts off a generator, an exception or a weak reference behind the name
	return root
}

const (
	arrow = " → "     // stands between the parts of a path
	graph = "grad_fn" // is the part of a path at which a graph of autograd begins
)

// entry matches an index or a key in brackets, in a holder's path.
var entry = regexp.MustCompile(`\[[^\[\]]+\]`)

// FoldHolder returns a path with the numbered entries of lists and dictionaries merged: "global kept[*]" for kept[7],
// kept['7/conv'] and kept['conv', 7]. A key without a digit, such as 'labels', stays, unless the agent cut it short.
func FoldHolder(path string) string {
	return entry.ReplaceAllStringFunc(path, func(key string) string {
		if strings.ContainsAny(key, "0123456789…") {
			return "[*]"
		}
		return key
	})
}
