package memory

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// The indexes of some categories in [schemas.Categories]. Ledgers sum bytes in arrays by this index, since maps by name
// would be slower.
var (
	NCategories = len(schemas.Categories)
	SlackPlace  = schemas.Precedence(schemas.Slack)
	otherPlace  = schemas.Precedence(schemas.Other)
)

// CategoryPlace returns the category's index in [schemas.Categories]. A category that this dpsight does not know counts
// as other.
func CategoryPlace(c schemas.Category) int { return schemas.CategoryPlace(c) }

// A Ledger has the blocks of one device with their owners.
type Ledger struct {
	// Allocs and Owners are rows of the tables, if these were loaded. A ledger that only sums bytes has lives and no
	// rows.
	Allocs []*schemas.Allocation
	Owners [][]*schemas.Owner // owners of each block, by index into Allocs
	lives  *schemas.Lives     // the owners of a block in the order in which they count
	sorted []Change           // the result of Changes, once computed
}

// Len returns the number of blocks.
func (l *Ledger) Len() int { return len(l.lives.AllocSeq) }

// LiveAt reports whether block i counts as allocated just after event seq.
func (l *Ledger) LiveAt(i int, seq int64) bool { return l.lives.LiveAt(i, seq) }

// Bytes returns the number of bytes requested for block i, and by how much the block is larger.
func (l *Ledger) Bytes(i int) (requested, slack int64) {
	return l.lives.Requested[i], l.lives.Block[i] - l.lives.Requested[i]
}

func (l *Ledger) evidence(owner uint32) schemas.Evidence {
	return l.lives.Evidences[l.lives.Evidence[owner]]
}

// Ledgers makes and keeps the ledger of each device of a run, so that a ledger is made only once. Making ledgers takes
// most of a summary's time.
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
	if len(in.Allocations) == 0 {
		for i := range in.Lives {
			if l := &in.Lives[i]; l.Rank == p.Rank && l.Device == p.Device {
				orderOwners(l)
				return &Ledger{lives: l}
			}
		}
	}
	l := &Ledger{Allocs: make([]*schemas.Allocation, 0, len(in.Allocations))}
	byID := make(map[int64]int, len(in.Allocations))
	for i := range in.Allocations {
		if a := &in.Allocations[i]; a.Rank == p.Rank && a.Device == p.Device {
			byID[a.AllocID] = len(l.Allocs)
			l.Allocs = append(l.Allocs, a)
		}
	}
	l.Owners = make([][]*schemas.Owner, len(l.Allocs))
	first := make([]*schemas.Owner, len(l.Allocs)) // nearly all blocks have one owner: room for these is made once
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
	l.lives = livesOf(l)
	return l
}

// livesOf converts a ledger's rows into columns.
func livesOf(l *Ledger) *schemas.Lives {
	n, owners := len(l.Allocs), 0
	for i := range l.Owners {
		owners += len(l.Owners[i])
	}
	out := &schemas.Lives{AllocSeq: make([]uint32, n), FreeSeq: make([]uint32, n), Requested: make([]int64, n),
		Block: make([]int64, n), Open: map[int]int64{}, OwnersFrom: make([]uint32, 1, n+1),
		Place: make([]uint8, 0, owners), Evidence: make([]uint8, 0, owners), BeginSeq: make([]uint32, 0, owners),
		EndSeq: make([]uint32, 0, owners)}
	var sorted []*schemas.Owner
	for i, a := range l.Allocs {
		out.AllocSeq[i], out.FreeSeq[i] = uint32(a.AllocSeq), uint32(a.FreeRequestedSeq)
		out.Requested[i], out.Block[i] = a.RequestedBytes, a.BlockBytes
		if a.OpenBytes != 0 {
			out.Open[i] = a.OpenBytes
		}
		sorted = append(sorted[:0], l.Owners[i]...)
		slices.SortStableFunc(sorted, compareOwners)
		for _, o := range sorted {
			k := slices.Index(out.Evidences, o.Evidence)
			if k < 0 {
				k, out.Evidences = len(out.Evidences), append(out.Evidences, o.Evidence)
			}
			out.Place, out.Evidence = append(out.Place, uint8(CategoryPlace(o.Category))), append(out.Evidence, uint8(k))
			out.BeginSeq, out.EndSeq = append(out.BeginSeq, uint32(o.BeginSeq)), append(out.EndSeq, uint32(o.EndSeq))
		}
		out.OwnersFrom = append(out.OwnersFrom, uint32(len(out.Place)))
	}
	return out
}

// orderOwners puts the owners of each block in the order of [compareOwners]. Nearly all blocks have one owner.
func orderOwners(l *schemas.Lives) {
	tagged := slices.Index(l.Evidences, schemas.Tagged)
	before := func(a, b uint32) bool {
		if l.Place[a] != l.Place[b] {
			return l.Place[a] < l.Place[b]
		}
		if at, bt := int(l.Evidence[a]) == tagged, int(l.Evidence[b]) == tagged; at != bt {
			return at
		}
		return l.BeginSeq[a] < l.BeginSeq[b]
	}
	for i := range l.AllocSeq {
		for k := l.OwnersFrom[i] + 1; k < l.OwnersFrom[i+1]; k++ {
			for j := k; j > l.OwnersFrom[i] && before(j, j-1); j-- {
				l.Place[j], l.Place[j-1] = l.Place[j-1], l.Place[j]
				l.Evidence[j], l.Evidence[j-1] = l.Evidence[j-1], l.Evidence[j]
				l.BeginSeq[j], l.BeginSeq[j-1] = l.BeginSeq[j-1], l.BeginSeq[j]
				l.EndSeq[j], l.EndSeq[j-1] = l.EndSeq[j-1], l.EndSeq[j]
			}
		}
	}
}

// Owner returns the owner under which block i counts just after event seq; nil if the block has none then. The owner's
// category that comes first in [schemas.Categories] decides. Of several owners with that category, a tag takes
// precedence over a rule, then an owner with a known module over one without, then the older owner.
func (l *Ledger) Owner(i int, seq int64) *schemas.Owner {
	var first *schemas.Owner
	for _, o := range l.Owners[i] {
		if o.HoldsAt(seq) && (first == nil || compareOwners(o, first) < 0) {
			first = o
		}
	}
	return first
}

// compareOwners orders the owners of one block by the precedence that [Ledger.Owner] describes.
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

// Category returns the index of the category under which block i counts just after event seq, and how that is known. At
// a moment that no owner covers, the category is other, with the evidence phase.
func (l *Ledger) Category(i int, seq int64) (place int, evidence schemas.Evidence) {
	for k := l.lives.OwnersFrom[i]; k < l.lives.OwnersFrom[i+1]; k++ {
		if l.lives.HoldsAt(k, seq) {
			return int(l.lives.Place[k]), l.evidence(k)
		}
	}
	return otherPlace, schemas.ByPhase
}

// Turns returns, in order, the events after which block i may count under another category, beginning with the event
// that allocated it. The events lie before end; end = 0 means the end of recording. The result uses buffer's memory.
func (l *Ledger) Turns(i int, end int64, buffer []int64) []int64 {
	from := int64(l.lives.AllocSeq[i])
	turns := append(buffer[:0], from)
	for k := l.lives.OwnersFrom[i]; k < l.lives.OwnersFrom[i+1]; k++ {
		for _, s := range [2]int64{int64(l.lives.BeginSeq[k]), int64(l.lives.EndSeq[k])} {
			if s > from && (end == 0 || s < end) {
				turns = append(turns, s)
			}
		}
	}
	if len(turns) == 1 {
		return turns
	}
	slices.Sort(turns)
	return slices.Compact(turns)
}

// A Change says that from an event on, some bytes more, or fewer, count under a category.
type Change struct {
	Bytes int64
	seq   uint32
	place uint8
}

func (c *Change) Seq() int64 { return int64(c.seq) }
func (c *Change) Place() int { return int(c.place) }

// Changes lists every change of every category over the whole run, in the order of events.
func (l *Ledger) Changes() []Change {
	if l.sorted != nil {
		return l.sorted
	}
	// A counting sort by event puts the changes in order, since comparing tens of millions of changes takes seconds.
	last, n := uint32(0), 0
	l.eachChange(func(c Change) { last, n = max(last, c.seq), n+1 })
	out := make([]Change, n)
	if int64(last) > 64*int64(n)+1<<20 { // no run has so few blocks for its events, but a damaged table may claim it
		n = 0
		l.eachChange(func(c Change) { out[n], n = c, n+1 })
		slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.seq, b.seq) })
		l.sorted = out
		return out
	}
	at := make([]uint32, int64(last)+2)
	l.eachChange(func(c Change) { at[int64(c.seq)+1]++ })
	for i := range len(at) - 1 {
		at[i+1] += at[i]
	}
	l.eachChange(func(c Change) { out[at[c.seq]], at[c.seq] = c, at[c.seq]+1 })
	l.sorted = out
	return out
}

// eachChange calls add with each change, block by block and not in the order of events.
func (l *Ledger) eachChange(add func(Change)) {
	change := func(seq uint32, place int, bytes int64) {
		if bytes != 0 {
			add(Change{bytes, seq, uint8(place)})
		}
	}
	var turns []int64
	for i, from := range l.lives.AllocSeq {
		end := l.lives.FreeSeq[i] // 0 = the block was never freed
		requested, slack := l.Bytes(i)
		turns = l.Turns(i, int64(end), turns)
		held := -1
		for _, s := range turns {
			now, _ := l.Category(i, s)
			if now == held {
				continue
			}
			if held >= 0 {
				change(uint32(s), held, -requested)
			}
			change(uint32(s), now, requested)
			held = now
		}
		change(from, SlackPlace, slack)
		if end != 0 {
			change(end, held, -requested)
			change(end, SlackPlace, -slack)
		}
	}
}

// Sweep calls each for every event at which some category changed, with the bytes of all categories just after the
// event. Sweep reuses the slice of bytes.
func Sweep(changes []Change, each func(seq int64, bytes []int64)) {
	bytes := make([]int64, NCategories)
	for i := 0; i < len(changes); {
		seq := changes[i].seq
		for ; i < len(changes) && changes[i].seq == seq; i++ {
			bytes[changes[i].place] += changes[i].Bytes
		}
		each(int64(seq), bytes)
	}
}

// maxima returns each category's own maximum over the run.
func maxima(changes []Change) []int64 {
	highest := make([]int64, NCategories)
	Sweep(changes, func(_ int64, bytes []int64) {
		for c, b := range bytes {
			highest[c] = max(highest[c], b)
		}
	})
	return highest
}

// BytesAt returns one category's bytes just after event seq.
func (l *Ledger) BytesAt(category schemas.Category, seq int64) (sum int64) {
	want := CategoryPlace(category)
	for i := range l.Len() {
		if !l.LiveAt(i, seq) {
			continue
		}
		if p, _ := l.Category(i, seq); p == want {
			sum += l.lives.Requested[i]
		}
	}
	return sum
}
