package store

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// userMarks places the marks that the script set with dpsight.mark among the events of each device of the script's
// process.
func userMarks(dir string) ([]schemas.UserMark, error) {
	type mark struct {
		rank, k int64
		label   string
	}
	kind := spool.UserMark.String()
	marks, err := readColumns(dir, schemas.Marks, []column[mark]{
		{name: "kind", word: func(*mark, string) {}},
		{name: "rank", int: func(m *mark, v int64) { m.rank = v }},
		{name: "k", int: func(m *mark, v int64) { m.k = v }},
		{name: "label", word: func(m *mark, v string) { m.label = v }},
	}, func(p []*piece, i int) bool { return p[0].words[i] == kind })
	if err != nil || len(marks) == 0 {
		return nil, optional(err, false)
	}
	slices.SortStableFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.k, b.k))
	})
	order, err := markOrder(dir)
	if err != nil {
		return nil, err
	}
	var out []schemas.UserMark
	for place, events := range order {
		for _, m := range marks {
			if m.rank == place[0] {
				seq, _ := events.before(m.k)
				out = append(out, schemas.UserMark{Rank: int32(place[0]), Device: int32(place[1]), Seq: seq, Label: m.label})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b schemas.UserMark) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Seq, b.Seq))
	})
	return out, nil
}
