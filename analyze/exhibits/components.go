package exhibits

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// The first mostComponents categories have a row of their own. Further ones, up to mostWithShares in all, have a row if
// they make at least the share shareOfOwnRow of some peak.
const (
	mostComponents = 8
	mostWithShares = 12
	shareOfOwnRow  = 0.01
)

// expected are the categories that have a row even if they are small, since readers look for them.
var expected = []schemas.Category{schemas.Parameters, schemas.OptimizerState, schemas.Gradients, schemas.Activations}

// Components divides the peaks of a group's entries into categories. For each entry, Parts and Rest sum to the peak, to
// the byte.
type Components struct {
	Entries []Entry // entries whose peak is broken down
	Parts   []Part  // the expected parts and the largest, in stacking order
	// HeldToo are the bytes that hooks and autograd both hold. The bytes of HeldToo count under activations.
	HeldToo []int64
	Rest    []int64 // bytes of all other categories, by entry
	Others  []schemas.Category
}

// A Part has the bytes of one category at each entry's peak.
type Part struct {
	Category schemas.Category
	Bytes    []int64
}

// ComponentsOf divides the peaks of a group's entries into categories.
func ComponentsOf(g *Group) Components {
	var c Components
	for _, e := range g.Entries {
		if e.BrokenDown() && e.Status == schemas.StatusOK {
			c.Entries = append(c.Entries, e)
		}
	}
	var all []Part
	for _, category := range schemas.Categories {
		part := Part{Category: category, Bytes: make([]int64, len(c.Entries))}
		for i, e := range c.Entries {
			part.Bytes[i] = e.Main().Category(category).Bytes
		}
		if len(part.Bytes) > 0 && slices.Max(part.Bytes) > 0 {
			all = append(all, part)
		}
	}
	bySize := slices.SortedStableFunc(slices.Values(all), func(a, b Part) int {
		if x, y := slices.Contains(expected, a.Category), slices.Contains(expected, b.Category); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return cmp.Compare(slices.Max(b.Bytes), slices.Max(a.Bytes))
	})
	share := func(part *Part) (most float64) {
		for i, n := range part.Bytes {
			if peak := c.Entries[i].PeakBytes; peak != nil && *peak > 0 {
				most = max(most, float64(n)/float64(*peak))
			}
		}
		return most
	}
	c.Rest = make([]int64, len(c.Entries))
	for _, part := range all {
		rank := slices.IndexFunc(bySize, func(o Part) bool { return o.Category == part.Category })
		if rank < mostComponents || rank < mostWithShares && share(&part) >= shareOfOwnRow ||
			len(all) == mostComponents+1 { // a rest of one category is shown under the category's name
			c.Parts = append(c.Parts, part)
			continue
		}
		c.Others = append(c.Others, part.Category)
		for i, b := range part.Bytes {
			c.Rest[i] += b
		}
	}
	c.HeldToo = make([]int64, len(c.Entries))
	for i, e := range c.Entries {
		c.HeldToo[i] = e.Main().Category(schemas.HookActivations).SharedWith[schemas.Activations]
	}
	return c
}

// Largest returns the category that is the largest part of every peak; "" if there is none.
func (c *Components) Largest() schemas.Category {
	var largest schemas.Category
	for i := range c.Entries {
		best := schemas.Category("")
		most := c.Rest[i]
		for _, part := range c.Parts {
			if part.Bytes[i] > most {
				best, most = part.Category, part.Bytes[i]
			}
		}
		if best == "" || largest != "" && best != largest {
			return ""
		}
		largest = best
	}
	return largest
}
