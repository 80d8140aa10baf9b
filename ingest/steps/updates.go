package steps

import (
	"slices"

	"github.com/dpsight/dpsight/schemas/spool"
)

// key identifies what an update updates: an optimizer or a compiled region.
type key struct {
	kind updateKind
	a    uint64 // number of the optimizer, or of the compiled region's name
}

type updateKind uint8

const (
	byOptimizer updateKind = iota
	inBackward
	skippedByScaler
	inCompiled
	byBackward
)

type update struct {
	node *node
	key  key
}

// updates appends the updates below node n to out, in order.
func (t *tree) updates(n *node, out []update) []update {
	for i := range n.kids {
		c := t.kid(n, i)
		switch c.shape {
		case optimizer:
			switch {
			case !c.updates():
			case c.flags&spool.FlagInBackward == 0:
				out = append(out, update{c, key{byOptimizer, c.a}})
			case c.whole: // an incomplete update counts with the unmarked run around it
				out = append(out, update{c, key{inBackward, 0}})
			}
		case dpStep:
			if o, _ := t.firstUpdate(c); o != nil {
				out = append(out, update{c, key{byOptimizer, o.a}})
			}
		case backward:
			if c.hasUpdate {
				out = append(out, update{c, key{inBackward, 0}})
			}
		case scaler:
			if c.a != 0 { // a call of GradScaler.update(), not of step()
				continue
			}
			if o, tried := t.firstUpdate(c); o != nil {
				out = append(out, update{c, key{byOptimizer, o.a}})
			} else if !tried {
				out = append(out, update{c, key{skippedByScaler, 0}})
			}
		case compiled:
			if c.hasTraining && !c.hasUpdate {
				out = append(out, update{c, key{inCompiled, c.a}})
			} else {
				out = t.updates(c, out)
			}
		case forward, dpBackward, recompute:
			out = t.updates(c, out)
		}
	}
	return out
}

// firstUpdate finds the first completed step of an optimizer inside n. tried is true if n has a step of an optimizer,
// completed or not.
func (t *tree) firstUpdate(n *node) (o *node, tried bool) {
	for i := range n.kids {
		c := t.kid(n, i)
		if c.shape == optimizer {
			if tried = true; c.updates() && c.ended {
				return c, true
			}
			continue
		}
		o, within := t.firstUpdate(c)
		if tried = tried || within; o != nil {
			return o, true
		}
	}
	return nil, tried
}

// backwards lists the backward passes that end a step if there is no update.
func (t *tree) backwards() []update {
	var plain, twoPass []update
	for i := range t.nodes {
		n := &t.nodes[i]
		switch {
		case n.shape == dpBackward:
			twoPass = append(twoPass, update{n, key{byBackward, 0}})
		case n.trains() && t.nodes[n.up].shape != backward && t.nodes[n.up].shape != optimizer:
			plain = append(plain, update{n, key{byBackward, 0}})
		}
	}
	if len(twoPass) > 0 {
		return twoPass
	}
	return plain
}

// boundaries chooses the updates that end steps, and returns the k of each end, in order.
func boundaries(ups []update) (ends []uint32, keys int) {
	at := map[key][]int{}
	var order []key // keys in the order in which they came
	for i, u := range ups {
		if at[u.key] == nil {
			order = append(order, u.key)
		}
		at[u.key] = append(at[u.key], i)
	}
	add := func(k key) {
		for _, i := range at[k] {
			if ups[i].node.ended {
				ends = append(ends, ups[i].node.end)
			}
		}
	}
	var clusters [][]key
	for _, k := range order {
		if k.kind == skippedByScaler {
			add(k)
			continue
		}
		keys++
		joined := []key{k}
		clusters = slices.DeleteFunc(clusters, func(c []key) bool {
			if !slices.ContainsFunc(c, func(o key) bool { return interleave(at[k], at[o]) }) {
				return false
			}
			joined = append(slices.Clone(c), joined...)
			return true
		})
		clusters = append(clusters, joined)
	}
	for _, c := range clusters {
		best := c[0]
		for _, k := range c[1:] {
			if n, m := len(at[k]), len(at[best]); n < m || n == m && at[k][0] > at[best][0] {
				best = k
			}
		}
		add(best)
	}
	slices.Sort(ends)
	return slices.Compact(ends), keys
}

// interleave reports whether the updates of two keys take turns. If each key has only one update, this is unknown, and
// the keys count as taking turns if their updates are neighbours.
func interleave(a, b []int) bool {
	if len(a) == 1 && len(b) == 1 {
		d := a[0] - b[0]
		return d == 1 || d == -1
	}
	return a[0] < b[len(b)-1] && b[0] < a[len(a)-1]
}
