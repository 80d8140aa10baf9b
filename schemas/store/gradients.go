package store

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// gradientTag is the name of the tag kind (spool.TagKind) that the agent uses for gradients.
const gradientTag = "gradient"

// surveyMark is the name of the mark (spool.Kind) that follows when the agent has tagged all tensors that the script
// holds.
const surveyMark = "survey"

// gradientWrites finds the event after which each gradient was written. gradientWrites takes the tags that gradient
// hooks made, and places them among the device's events by the marks that events carry.
func gradientWrites(dir string) ([]schemas.GradientWrite, error) {
	tags, err := gradientTags(dir)
	if err != nil || len(tags) == 0 {
		return nil, err
	}
	slices.SortStableFunc(tags, func(a, b tagged) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.k, b.k))
	})
	order, err := markOrder(dir)
	if err != nil {
		return nil, err
	}
	var out []schemas.GradientWrite
	for place, events := range order {
		for _, t := range tags {
			if t.rank != place[0] {
				continue
			}
			if seq, more := events.before(t.k); more { // otherwise nothing was allocated or freed after the mark
				out = append(out, schemas.GradientWrite{Rank: int32(place[0]), Device: int32(place[1]), Seq: seq,
					Address: t.address})
			}
		}
	}
	return out, nil
}

// tagged is one tag of a gradient.
type tagged struct {
	rank, k int64
	address uint64
}

// gradientTags lists the gradients that hooks tagged. gradientTags leaves out the tags of a survey, since they do not
// show when a gradient was written.
func gradientTags(dir string) ([]tagged, error) {
	surveys, err := readColumns(dir, schemas.Marks, []column[tagged]{
		{name: "kind", word: func(*tagged, string) {}},
		{name: "rank", int: func(t *tagged, v int64) { t.rank = v }},
		{name: "a", int: func(t *tagged, v int64) { t.k = v }},
	}, func(p []*piece, i int) bool { return p[0].words[i] == surveyMark })
	if optional(err, false) != nil {
		return nil, err
	}
	tags, err := readColumns(dir, schemas.Marks, []column[tagged]{
		{name: "category", word: func(*tagged, string) {}},
		{name: "rank", int: func(t *tagged, v int64) { t.rank = v }},
		{name: "k", int: func(t *tagged, v int64) { t.k = v }},
		{name: "address", int: func(t *tagged, v int64) { t.address = uint64(v) }},
	}, func(p []*piece, i int) bool { return p[0].words[i] == gradientTag })
	surveyed := map[tagged]bool{} // the marks of surveys, by rank and mark alone
	for _, s := range surveys {
		surveyed[s] = true
	}
	tags = slices.DeleteFunc(tags, func(t tagged) bool { return surveyed[tagged{rank: t.rank, k: t.k}] })
	return tags, optional(err, false)
}

// marked has a mark and the first event of a device whose mark is at least that mark.
type marked struct{ mark, seq int64 }

// markedEvents has the events of a device at which the highest mark so far rises.
type markedEvents struct {
	rises []marked // where the highest mark seen so far rises
	last  int64    // number of the last event
}

// before returns the last event before mark k, or 0 if there is none. more is true if there are events after mark k.
func (m *markedEvents) before(k int64) (seq int64, more bool) {
	i, _ := slices.BinarySearchFunc(m.rises, k, func(r marked, k int64) int { return cmp.Compare(r.mark, k) })
	if i == len(m.rises) {
		return m.last, false
	}
	return m.rises[i].seq - 1, true
}

// markOrder returns the events of each device in the order of marks, by the device's rank and ordinal.
func markOrder(dir string) (map[[2]int64]*markedEvents, error) {
	order := map[[2]int64]*markedEvents{}
	err := columns(dir, schemas.Events, []string{"rank", "device", "seq", "mark"}, func(int64) {},
		func(p []*piece, n int) {
			rank, device, seq, mark := p[0].ints, p[1].ints, p[2].ints, p[3].ints
			var of *markedEvents
			for i := range n {
				if of == nil || rank[i] != rank[i-1] || device[i] != device[i-1] {
					at := [2]int64{rank[i], device[i]}
					if order[at] == nil {
						order[at] = &markedEvents{}
					}
					of = order[at]
				}
				of.last = seq[i]
				if mark[i] > 0 && (len(of.rises) == 0 || of.rises[len(of.rises)-1].mark < mark[i]) {
					of.rises = append(of.rises, marked{mark[i], seq[i]})
				}
			}
		})
	return order, optional(err, false)
}
