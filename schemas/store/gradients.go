package store

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// gradientTag is what the agent calls a gradient in a tag (a spool.TagKind).
const gradientTag = "gradient"

// surveyMark is the mark of a look at all that the script holds (a spool.Kind).
const surveyMark = "survey"

// gradientWrites reads when each gradient was written: the hooks' tags, among the marks, set in the order of each
// device's events by the marks that those carry.
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
	for place, marks := range order {
		next := 0
		for _, t := range tags {
			if t.rank != place[0] {
				continue
			}
			for next < len(marks) && marks[next].mark < t.k {
				next++
			}
			if next == len(marks) { // nothing was allocated or freed after it
				break
			}
			out = append(out, schemas.GradientWrite{Rank: int32(place[0]), Device: int32(place[1]),
				Seq: marks[next].seq - 1, Address: t.address})
		}
	}
	return out, nil
}

// tagged is one tag of a gradient.
type tagged struct {
	rank, k int64
	address uint64
}

// gradientTags lists what the hooks say. A survey finds gradients as well, whenever they were written.
func gradientTags(dir string) ([]tagged, error) {
	surveys, err := readColumns(dir, schemas.Marks, []column[tagged]{
		{name: "kind", word: func(*tagged, string) {}},
		{name: "rank", int: func(t *tagged, v int64) { t.rank = v }},
		{name: "a", int: func(t *tagged, v int64) { t.k = v }},
	}, func(p *piece, i int) bool { return p.words[i] == surveyMark })
	if optional(err, false) != nil {
		return nil, err
	}
	tags, err := readColumns(dir, schemas.Marks, []column[tagged]{
		{name: "category", word: func(*tagged, string) {}},
		{name: "rank", int: func(t *tagged, v int64) { t.rank = v }},
		{name: "k", int: func(t *tagged, v int64) { t.k = v }},
		{name: "address", int: func(t *tagged, v int64) { t.address = uint64(v) }},
	}, func(p *piece, i int) bool { return p.words[i] == gradientTag })
	surveyed := map[tagged]bool{} // by rank and mark alone
	for _, s := range surveys {
		surveyed[s] = true
	}
	tags = slices.DeleteFunc(tags, func(t tagged) bool { return surveyed[tagged{rank: t.rank, k: t.k}] })
	return tags, optional(err, false)
}

// marked is the first event of a device whose mark is as high.
type marked struct{ mark, seq int64 }

// markOrder lists, by rank and device, where the highest mark so far rises.
func markOrder(dir string) (map[[2]int64][]marked, error) {
	order := map[[2]int64][]marked{}
	err := columns(dir, schemas.Events, []string{"rank", "device", "seq", "mark"}, func(int64) {},
		func(p []*piece, n int) {
			rank, device, seq, mark := p[0].ints, p[1].ints, p[2].ints, p[3].ints
			for i := range n {
				if mark[i] == 0 || i > 0 && mark[i] <= mark[i-1] && rank[i] == rank[i-1] && device[i] == device[i-1] {
					continue
				}
				at := [2]int64{rank[i], device[i]}
				if list := order[at]; len(list) == 0 || list[len(list)-1].mark < mark[i] {
					order[at] = append(list, marked{mark[i], seq[i]})
				}
			}
		})
	return order, optional(err, false)
}
