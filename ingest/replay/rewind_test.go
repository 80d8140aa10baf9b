package replay

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// If a recording began late, the replay bounds its values, and the true values lie within these bounds. If the sizes of
// all older blocks are known, all values and blocks are exact. Even if some sizes are unknown, most peaks are exact.
func TestRewound(t *testing.T) {
	var cuts, known, toTheByte int
	for _, v := range variants {
		for seed := range uint64(4) {
			m := v.simulate(20+seed, 2500, 60, func(m *model) { m.hidePools = seed%2 == 0 })
			for place := range 8 {
				cut := m.trace.Len() * (place + 1) / 9
				e, final := tail(m, cut), m.list()
				for i := range final {
					final[i].Seq -= int64(cut)
				}
				res, err := Run(e, v.settings, nil, final, every(e.Len())...)
				if err != nil {
					t.Fatal(err)
				}
				checkResult(t, res, e)
				if !res.Rewound || !res.Final.Exact() || res.Final.Unchecked > 0 || res.Anomalies.Lost() > 0 {
					t.Fatalf("%s, seed %d, from event %d: %s: %+v", v.name, seed, cut, res.Anomalies.Reason(), res.Final)
				}
				peak := int64(0)
				for i, c := range res.Checkpoints {
					want := m.history[cut+i]
					peak = max(peak, want.Allocated)
					high := c.Allocated + openAfter(res, int64(i))
					if c.Allocated > want.Allocated || high < want.Allocated || c.Reserved != want.Reserved ||
						c.Requested != want.Requested || res.Anomalies.LateSlack == 0 && c.Active != want.Active {
						t.Fatalf("%s, seed %d, from event %d: after event %d: %+v, at most %d, want %+v", v.name, seed, cut,
							i, c, high, want)
					}
				}
				if res.PeakAllocated > peak || res.PeakHigh < peak {
					t.Errorf("%s, seed %d, from event %d: the peak is %d, not %d to %d", v.name, seed, cut, peak,
						res.PeakAllocated, res.PeakHigh)
				}
				cuts++
				if res.PeakAllocated == peak {
					toTheByte++
				}
				if res.Anomalies.LateSlack == 0 {
					known++
				}
			}
		}
	}
	t.Logf("%d of %d cuts to the byte; of %d all sizes are known", toTheByte, cuts, known)
	if toTheByte*10 < cuts*9 || known == 0 || known == cuts {
		t.Error("too few are to the byte, or the cuts exercise too little")
	}
}

func openAfter(res *Result, seq int64) (open int64) {
	for i := range res.Allocs {
		if a := &res.Allocs[i]; a.AllocSeq > 0 {
			break
		} else if a.LiveAt(seq) {
			open += a.Open
		}
	}
	return open
}

// If the events cannot have led to the list at the end, the replay does not treat them as a recording that began late.
func TestContradictions(t *testing.T) {
	v := variants[0]
	m := v.simulate(3, 2500, 60, nil)
	cut := m.trace.Len() / 2
	e := tail(m, cut)
	list := m.list()
	for i := range list {
		list[i].Seq -= int64(cut)
	}
	for name, spoil := range map[string]func(rows []schemas.SegmentBlock) []schemas.SegmentBlock{
		"nothing": func(rows []schemas.SegmentBlock) []schemas.SegmentBlock { return rows },
		"a segment is not in the list": func(rows []schemas.SegmentBlock) []schemas.SegmentBlock {
			last := rows[len(rows)-1].SegmentAddress
			for rows[len(rows)-1].SegmentAddress == last {
				rows = rows[:len(rows)-1]
			}
			return rows
		},
		"a block is not in the list": func(rows []schemas.SegmentBlock) []schemas.SegmentBlock {
			for i := len(rows) - 1; ; i-- {
				if rows[i].State != schemas.BlockInactive && wasBorn(e, rows[i].Address) {
					rows[i].State = schemas.BlockInactive
					return rows
				}
			}
		},
	} {
		res, err := Run(e, v.settings, nil, spoil(append([]schemas.SegmentBlock(nil), list...)))
		if err != nil {
			t.Fatal(err)
		}
		if lost := res.Anomalies.Lost() > 0 || !res.Final.Exact(); lost != (name != "nothing") {
			t.Errorf("%s: %s: %+v", name, res.Anomalies.Reason(), res.Final)
		}
	}
}

func wasBorn(e *schemas.EventColumns, addr uint64) bool {
	for i, a := range e.Action {
		if a == schemas.ActionAlloc && e.Addr[i] == addr {
			return true
		}
	}
	return false
}
