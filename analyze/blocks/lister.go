package blocks

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// A lister fills the columns of a device.
type lister struct {
	*Device
	modules   *memory.ModuleIndex
	lines     map[int64]*schemas.Line
	names     *grouping.Keyer
	holders   *grouping.Keyer // nil if nobody looked for holders
	kinds     map[Kind]uint32
	addresses map[uint64]uint32
	texts     map[string]int
}

func newLister(in *schemas.Tables, p identity.Place, d *Device) *lister {
	keyer := func(d grouping.Dimension) *grouping.Keyer {
		return grouping.NewKeyer(in, d, &grouping.By{Dimensions: []grouping.Dimension{d}}, p)
	}
	d.Texts = []string{""}
	s := &lister{Device: d, modules: memory.NewModuleIndex(in, p.Rank), lines: grouping.LinesOf(in, p.Rank),
		names: keyer(grouping.DimensionName), kinds: map[Kind]uint32{}, addresses: map[uint64]uint32{},
		texts: map[string]int{"": 0}}
	if len(in.Holders) > 0 {
		s.holders = keyer(grouping.DimensionHolder)
	}
	return s
}

func (s *lister) list(l *memory.Ledger) {
	var turns []int64
	for i, a := range l.Allocs {
		address, ok := s.addresses[a.Address]
		if !ok {
			address = uint32(len(s.Addresses))
			s.addresses[a.Address], s.Addresses = address, append(s.Addresses, a.Address)
		}
		turns = l.Turns(i, a.FreeRequestedSeq, turns)
		first := len(s.Kind)
		for _, seq := range turns {
			kind := s.kind(l, i, seq)
			if n := len(s.Kind); n > first {
				if s.Kind[n-1] == kind {
					continue
				}
				s.End[n-1] = uint32(seq)
			}
			s.Kind, s.Begin = append(s.Kind, kind), append(s.Begin, uint32(seq))
			s.End, s.Address = append(s.End, uint32(a.FreeRequestedSeq)), append(s.Address, address)
			next := uint8(0)
			if len(s.Kind) > first+1 {
				next = 1
			}
			s.Next = append(s.Next, next)
		}
	}
}

// kind returns the index, among the device's kinds, of the kind that block i has just after an event.
func (s *lister) kind(l *memory.Ledger, i int, seq int64) uint32 {
	a, o := l.Allocs[i], l.Owner(i, seq)
	var k Kind
	k.Requested, k.Slack = l.Bytes(i)
	k.Category, k.Evidence = l.Category(i, seq)
	var counted memory.ModuleBytes
	m, _ := s.modules.Module(l, i, seq, &counted)
	if m != nil {
		k.Module, k.Role = s.text(grouping.ModulePath(m, 0)), s.text(m.Role)
	}
	k.Name = s.text(s.names.Key(a, k.Category, m, o).Text)
	if s.holders != nil {
		k.Holder = s.text(s.holders.Key(a, k.Category, m, o).Text)
	}
	if line := s.lines[a.Line]; line != nil {
		text := grouping.LineText(line)
		k.Line = s.text(text)
		if line.Text != "" {
			s.Sources[text] = line.Text
		}
	}
	if k.Phase = s.text(a.Phase); a.Phase == "" {
		k.Phase = s.text(grouping.Unseen(a))
	}
	place, ok := s.kinds[k]
	if !ok {
		place = uint32(len(s.Kinds))
		s.kinds[k], s.Kinds = place, append(s.Kinds, k)
	}
	return place
}

func (s *lister) text(text string) int {
	place, ok := s.texts[text]
	if !ok {
		place = len(s.Texts)
		s.texts[text], s.Texts = place, append(s.Texts, text)
	}
	return place
}
