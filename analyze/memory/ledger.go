package memory

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// Places of categories in [schemas.Categories]. Bytes are summed in arrays by place, never in maps by name.
var (
	NCategories = len(schemas.Categories)
	SlackPlace  = schemas.Precedence(schemas.Slack)
	otherPlace  = schemas.Precedence(schemas.Other)
)

// CategoryPlace is the category's place; a category that this dpsight does not know counts as other.
func CategoryPlace(c schemas.Category) int {
	if p := schemas.Precedence(c); p < NCategories {
		return p
	}
	return otherPlace
}

// A Ledger is one device's blocks with their owners.
type Ledger struct {
	Allocs []*schemas.Allocation
	Owners [][]*schemas.Owner // by index into allocs
	sorted []Change           // what changes gives, once asked
}

// Ledgers makes each device's ledger once: they are most of a summary's time.
type Ledgers struct {
	in *schemas.Tables
	by map[identity.Place]*Ledger
}

func NewLedgers(in *schemas.Tables) *Ledgers { return &Ledgers{in, map[identity.Place]*Ledger{}} }

func (m *Ledgers) Of(p identity.Place) *Ledger {
	if m.by[p] == nil {
		m.by[p] = NewLedger(m.in, p)
	}
	return m.by[p]
}

func NewLedger(in *schemas.Tables, p identity.Place) *Ledger {
	l := &Ledger{Allocs: make([]*schemas.Allocation, 0, len(in.Allocations))}
	byID := make(map[int64]int, len(in.Allocations))
	for i := range in.Allocations {
		if a := &in.Allocations[i]; a.Rank == p.Rank && a.Device == p.Device {
			byID[a.AllocID] = len(l.Allocs)
			l.Allocs = append(l.Allocs, a)
		}
	}
	l.Owners = make([][]*schemas.Owner, len(l.Allocs))
	first := make([]*schemas.Owner, len(l.Allocs)) // nearly all blocks have one: they lie in one piece
	for i := range in.Owners {
		o := &in.Owners[i]
		if o.Rank != p.Rank || o.Device != p.Device {
			continue
		}
		k, ok := byID[o.AllocID]
		switch {
		case !ok:
		case l.Owners[k] == nil:
			first[k] = o
			l.Owners[k] = first[k : k+1 : k+1]
		default:
			l.Owners[k] = append(l.Owners[k], o)
		}
	}
	return l
}

// Owner is the ownership that block i is counted under just after event seq; nil where none holds. The category that
// comes first in [schemas.Categories] decides. Of several ownerships of that category a tag comes before a rule, then
// one that knows its module, then the older.
func (l *Ledger) Owner(i int, seq int64) *schemas.Owner {
	var first *schemas.Owner
	for _, o := range l.Owners[i] {
		if o.HoldsAt(seq) && (first == nil || compareOwners(o, first) < 0) {
			first = o
		}
	}
	return first
}

// compareOwners orders the ownerships of one block as [Ledger.Owner] says.
func compareOwners(a, b *schemas.Owner) int {
	if a.Category != b.Category {
		if d := cmp.Compare(CategoryPlace(a.Category), CategoryPlace(b.Category)); d != 0 {
			return d
		}
	}
	return cmp.Or(falseFirst(a.Evidence != schemas.Tagged, b.Evidence != schemas.Tagged),
		falseFirst(a.Module == 0, b.Module == 0), cmp.Compare(a.BeginSeq, b.BeginSeq), cmp.Compare(a.Module, b.Module))
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Category is the place of the category that block i is counted under just after event seq, and how that is known. A
// moment that no owner covers is other, by phase.
func (l *Ledger) Category(i int, seq int64) (place int, evidence schemas.Evidence) {
	if o := l.Owner(i, seq); o != nil {
		return CategoryPlace(o.Category), o.Evidence
	}
	return otherPlace, schemas.ByPhase
}

// Turns are the events of block i's life after which it may count under another category, the first of its life
// included, in order. They lie before end; 0 = to the end of recording. buffer is used again.
func (l *Ledger) Turns(i int, end int64, buffer []int64) []int64 {
	from := l.Allocs[i].AllocSeq
	turns := append(buffer[:0], from)
	for _, o := range l.Owners[i] {
		for _, s := range [2]int64{o.BeginSeq, o.EndSeq} {
			if s > from && (end == 0 || s < end) {
				turns = append(turns, s)
			}
		}
	}
	slices.Sort(turns)
	return slices.Compact(turns)
}

// A Change says that from event seq on a category counts that many bytes more.
type Change struct {
	Seq   int64
	Place int
	Bytes int64
}

// Changes lists every change of every category over the whole run, by sequence.
func (l *Ledger) Changes() []Change {
	if l.sorted != nil {
		return l.sorted
	}
	out := make([]Change, 0, 3*len(l.Allocs))
	var turns []int64
	for i, a := range l.Allocs {
		end := a.FreeRequestedSeq // 0 = never
		add := func(seq int64, place int, bytes int64) {
			if bytes != 0 {
				out = append(out, Change{seq, place, bytes})
			}
		}
		turns = l.Turns(i, end, turns)
		held := -1
		for _, s := range turns {
			now, _ := l.Category(i, s)
			if now == held {
				continue
			}
			if held >= 0 {
				add(s, held, -a.RequestedBytes)
			}
			add(s, now, a.RequestedBytes)
			held = now
		}
		add(a.AllocSeq, SlackPlace, a.BlockBytes-a.RequestedBytes)
		if end != 0 {
			add(end, held, -a.RequestedBytes)
			add(end, SlackPlace, a.RequestedBytes-a.BlockBytes)
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Seq, b.Seq) })
	l.sorted = out
	return out
}

// Sweep calls each after every event at which some category changed, with the bytes of every category just after it.
// The slice is reused.
func Sweep(changes []Change, each func(seq int64, bytes []int64)) {
	bytes := make([]int64, NCategories)
	for i := 0; i < len(changes); {
		seq := changes[i].Seq
		for ; i < len(changes) && changes[i].Seq == seq; i++ {
			bytes[changes[i].Place] += changes[i].Bytes
		}
		each(seq, bytes)
	}
}

// maxima gives each category's own maximum over the run.
func maxima(changes []Change) []int64 {
	highest := make([]int64, NCategories)
	Sweep(changes, func(_ int64, bytes []int64) {
		for c, b := range bytes {
			highest[c] = max(highest[c], b)
		}
	})
	return highest
}

// BytesAt gives one category's bytes just after event seq.
func (l *Ledger) BytesAt(category schemas.Category, seq int64) (sum int64) {
	want := CategoryPlace(category)
	for i, a := range l.Allocs {
		if !a.LiveAt(seq) {
			continue
		}
		if p, _ := l.Category(i, seq); p == want {
			sum += a.RequestedBytes
		}
	}
	return sum
}
