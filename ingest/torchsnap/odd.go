package torchsnap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas/units"
)

// maxOddities is the largest number of distinct kinds of odd values that are counted separately, since a file can
// contain any number of kinds.
const maxOddities = 64

// oddities counts skipped values by kind.
type oddities struct {
	kinds  []string // kinds of skipped values, in the order in which they came
	counts []int64  // number of values of each kind; the last may stand for all further kinds
	ids    map[string]int
}

// kind returns the number of a kind of oddity. All kinds beyond the limit share one number.
func (o *oddities) kind(err error) int {
	text := err.Error()
	id, ok := o.ids[text]
	switch {
	case ok:
		return id
	case len(o.kinds) == maxOddities:
		return maxOddities
	}
	if o.ids == nil {
		o.ids, o.counts = map[string]int{}, make([]int64, maxOddities+1)
	}
	o.ids[text] = len(o.kinds)
	o.kinds = append(o.kinds, text)
	return len(o.kinds) - 1
}

// passOver counts a value that torch would not write and that is skipped, since the snapshot is useful without it.
func (b *builder) passOver(err error) {
	kind := b.odd.kind(err)
	b.odd.counts[kind]++
}

// list returns the oddities as sentences without a full stop.
func (o *oddities) list() []string {
	var out []string
	for id, kind := range o.kinds {
		switch n := o.counts[id]; n {
		case 0: // the value only looked like a part of the snapshot
		case 1:
			out = append(out, kind)
		default:
			out = append(out, fmt.Sprintf("%s (%d times)", kind, n))
		}
	}
	if len(o.kinds) == maxOddities && o.counts[maxOddities] > 0 {
		out = append(out, units.Plural(int(o.counts[maxOddities]), "more odd value", "more odd values"))
	}
	return out
}

// Strict returns an error that names all skipped values, or nil if nothing was skipped. Strict is for snapshots that
// dpsight's agent made, in which nothing should be odd.
func (s *Snapshot) Strict() error {
	if len(s.Odd) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(slices.Clone(s.Odd[:min(len(s.Odd), 3)]), "; "))
}
