package join

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// owner is one owner of one allocation, in compact form. The owner holds the allocation just after each event from
// begin up to, but not including, end.
type owner struct {
	alloc      int32
	category   categoryIndex
	evidence   evidence
	observed   bool // the owner ended before the allocation was freed
	user       bool // a tag of the script made the owner, for this allocation or for its match
	name       uint32
	module     uint32
	begin, end int64 // events; end 0 = to the end of recording
}

// evidence says how an owner is known, as an index in evidences.
type evidence uint8

const (
	tagged evidence = iota
	lifetime
	byStack
	byPhase
)

var evidences = [...]schemas.Evidence{schemas.Tagged, schemas.Lifetime, schemas.ByStack, schemas.ByPhase}

// lists has one list for each allocation. All lists lie in a single slice.
type lists[T any] struct {
	all   []T
	first []int32 // index of each allocation's first owner, and one more index at the end
}

// listsOf builds the lists of n allocations in order. add appends the list of one allocation to the slice of all lists.
func listsOf[T any](n, capacity int, add func(all []T, alloc int) []T) lists[T] {
	l := lists[T]{make([]T, 0, capacity), make([]int32, n+1)}
	for alloc := range n {
		l.all = add(l.all, alloc)
		l.first[alloc+1] = int32(len(l.all))
	}
	return l
}

// of returns the list of one allocation.
func (l *lists[T]) of(alloc int) []T { return l.all[l.first[alloc]:l.first[alloc+1]] }

// sortByPrecedence puts the owners of each allocation in the order in which their categories count.
func sortByPrecedence(owners lists[owner]) {
	for alloc := range len(owners.first) - 1 {
		slices.SortFunc(owners.of(alloc), func(a, b owner) int {
			return cmp.Or(cmp.Compare(a.category, b.category), cmp.Compare(a.begin, b.begin))
		})
	}
}

// hasTagged reports whether a tag puts an allocation into a category.
func hasTagged(owners []owner, category categoryIndex) bool {
	return slices.ContainsFunc(owners, func(o owner) bool { return o.category == category && o.evidence == tagged })
}
