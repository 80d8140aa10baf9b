package pickle

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
)

// tree is a builder that keeps all containers, as nodes in the tagged JSON that make.py writes.
type tree struct {
	d    *Decoder
	refs []*node
}

type node struct {
	kind  Kind
	items []any
}

func (t *tree) extend(kind Kind, r Ref, items []Value) (Ref, error) {
	if r.Tag == 0 {
		t.refs = append(t.refs, &node{kind: kind})
		r = Ref{Tag: uint8(kind), ID: uint64(len(t.refs) - 1)}
	}
	n := t.refs[r.ID]
	for _, v := range items {
		n.items = append(n.items, t.value(v))
	}
	return r, t.d.Charge(64 + 32*int64(len(items)))
}

func (t *tree) List(r Ref, items []Value) (Ref, error) { return t.extend(List, r, items) }
func (t *tree) Dict(r Ref, items []Value) (Ref, error) { return t.extend(Dict, r, items) }
func (t *tree) Tuple(items []Value) (Ref, error)       { return t.extend(Tuple, Ref{}, items) }

func (t *tree) value(v Value) any {
	switch v.Kind() {
	case None:
		return nil
	case Bool:
		return v.Bool()
	case Int:
		return map[string]any{"int": strconv.FormatInt(v.Int(), 10)}
	case Uint:
		return map[string]any{"int": new(big.Int).SetUint64(v.Uint()).String()}
	case BigInt:
		return map[string]any{"int": t.d.Text(v.ID())}
	case Float:
		return v.Float()
	case String:
		return t.d.Text(v.ID())
	case Bytes:
		return map[string]any{"bytes": hex.EncodeToString([]byte(t.d.Text(v.ID())))}
	case List, Dict, Tuple:
		if v.Ref().Tag == 0 {
			return &node{kind: v.Kind()}
		}
		return t.refs[v.Ref().ID]
	}
	panic(fmt.Sprintf("value of kind %d", v.Kind()))
}

// plain replaces nodes by their contents. plain expands each use of a shared part, so it must only be used for values
// with few shared parts.
func plain(v any) any {
	n, ok := v.(*node)
	if !ok {
		return v
	}
	out := make([]any, 0, len(n.items))
	for _, x := range n.items {
		out = append(out, plain(x))
	}
	switch n.kind {
	case Tuple:
		return map[string]any{"tuple": out}
	case Dict:
		pairs := make([]any, 0, len(out)/2)
		for i := 0; i < len(out); i += 2 {
			pairs = append(pairs, []any{out[i], out[i+1]})
		}
		return map[string]any{"dict": pairs}
	}
	return out
}
