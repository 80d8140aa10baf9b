package analyze

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Places of categories in schemas.Categories. Bytes are summed in arrays by place, never in maps by name.
var (
	nCategories = len(schemas.Categories)
	slackPlace  = schemas.Precedence(schemas.Slack)
	otherPlace  = schemas.Precedence(schemas.Other)
)

// categoryPlace is the category's place; a category that this dpsight does not know counts as other.
func categoryPlace(c schemas.Category) int {
	if p := schemas.Precedence(c); p < nCategories {
		return p
	}
	return otherPlace
}

// A ledger is one device's blocks with their owners.
type ledger struct {
	allocs []*schemas.Allocation
	owners [][]*schemas.Owner // by index into allocs
	sorted []change           // what changes gives, once asked
}

// ledgers makes each device's ledger once: they are most of a summary's time.
type ledgers struct {
	in *Input
	by map[place]*ledger
}

func (in *Input) newLedgers() *ledgers { return &ledgers{in, map[place]*ledger{}} }

func (m *ledgers) of(p place) *ledger {
	if m.by[p] == nil {
		m.by[p] = newLedger(m.in, p)
	}
	return m.by[p]
}

func newLedger(in *Input, p place) *ledger {
	l := &ledger{allocs: make([]*schemas.Allocation, 0, len(in.Allocations))}
	byID := make(map[int64]int, len(in.Allocations))
	for i := range in.Allocations {
		if a := &in.Allocations[i]; a.Rank == p.rank && a.Device == p.device {
			byID[a.AllocID] = len(l.allocs)
			l.allocs = append(l.allocs, a)
		}
	}
	l.owners = make([][]*schemas.Owner, len(l.allocs))
	first := make([]*schemas.Owner, len(l.allocs)) // nearly all blocks have one: they lie in one piece
	for i := range in.Owners {
		o := &in.Owners[i]
		if o.Rank != p.rank || o.Device != p.device {
			continue
		}
		k, ok := byID[o.AllocID]
		switch {
		case !ok:
		case l.owners[k] == nil:
			first[k] = o
			l.owners[k] = first[k : k+1 : k+1]
		default:
			l.owners[k] = append(l.owners[k], o)
		}
	}
	return l
}

// owner is the place of the category that block i is counted under just after event seq, and how that is known.
// A moment that no owner covers is other, by phase.
func (l *ledger) owner(i int, seq int64) (place int, evidence schemas.Evidence) {
	place = nCategories
	for _, o := range l.owners[i] {
		if !o.HoldsAt(seq) {
			continue
		}
		switch p := categoryPlace(o.Category); {
		case p < place:
			place, evidence = p, o.Evidence
		case p == place && o.Evidence == schemas.Tagged:
			evidence = o.Evidence
		}
	}
	if place == nCategories {
		return otherPlace, schemas.ByPhase
	}
	return place, evidence
}

// A change says that from event seq on a category counts that many bytes more.
type change struct {
	seq   int64
	place int
	bytes int64
}

// changes lists every change of every category over the whole run, by sequence.
func (l *ledger) changes() []change {
	if l.sorted != nil {
		return l.sorted
	}
	out := make([]change, 0, 3*len(l.allocs))
	var cuts []int64
	for i, a := range l.allocs {
		end := a.FreeRequestedSeq // 0 = never
		add := func(seq int64, place int, bytes int64) {
			if bytes != 0 {
				out = append(out, change{seq, place, bytes})
			}
		}
		cuts = append(cuts[:0], a.AllocSeq)
		for _, o := range l.owners[i] {
			for _, s := range [2]int64{o.BeginSeq, o.EndSeq} {
				if s > a.AllocSeq && (end == 0 || s < end) {
					cuts = append(cuts, s)
				}
			}
		}
		slices.Sort(cuts)
		held := -1
		for _, s := range slices.Compact(cuts) {
			now, _ := l.owner(i, s)
			if now == held {
				continue
			}
			if held >= 0 {
				add(s, held, -a.RequestedBytes)
			}
			add(s, now, a.RequestedBytes)
			held = now
		}
		add(a.AllocSeq, slackPlace, a.BlockBytes-a.RequestedBytes)
		if end != 0 {
			add(end, held, -a.RequestedBytes)
			add(end, slackPlace, a.RequestedBytes-a.BlockBytes)
		}
	}
	slices.SortFunc(out, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	l.sorted = out
	return out
}

// sweep calls each after every event at which some category changed, with the bytes of every category just after it.
// The slice is reused.
func sweep(changes []change, each func(seq int64, bytes []int64)) {
	bytes := make([]int64, nCategories)
	for i := 0; i < len(changes); {
		seq := changes[i].seq
		for ; i < len(changes) && changes[i].seq == seq; i++ {
			bytes[changes[i].place] += changes[i].bytes
		}
		each(seq, bytes)
	}
}

// maxima gives each category's own maximum over the run.
func maxima(changes []change) []int64 {
	highest := make([]int64, nCategories)
	sweep(changes, func(_ int64, bytes []int64) {
		for c, b := range bytes {
			highest[c] = max(highest[c], b)
		}
	})
	return highest
}

// bytesAt gives one category's bytes just after event seq.
func (l *ledger) bytesAt(category schemas.Category, seq int64) (sum int64) {
	want := categoryPlace(category)
	for i, a := range l.allocs {
		if !a.LiveAt(seq) {
			continue
		}
		if p, _ := l.owner(i, seq); p == want {
			sum += a.RequestedBytes
		}
	}
	return sum
}
