package store

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
)

// gradientTag is what the agent calls a gradient in a tag (a spool.TagKind).
const gradientTag = "gradient"

// gradientWrites reads when each gradient was written: the hooks' tags, among the marks, set in the order of each device's
// events by the marks that those carry.
func gradientWrites(dir string) ([]schemas.GradientWrite, error) {
	tags, err := gradientTags(dir)
	if err != nil || len(tags) == 0 {
		return nil, err
	}
	slices.SortStableFunc(tags, func(a, b tagged) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.k, b.k)) })
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
			out = append(out, schemas.GradientWrite{Rank: int32(place[0]), Device: int32(place[1]), Seq: marks[next].seq - 1, Address: t.address})
		}
	}
	return out, nil
}

// tagged is one tag of a gradient.
type tagged struct {
	rank, k int64
	address uint64
}

func gradientTags(dir string) (tags []tagged, err error) {
	var rows [][]parquet.Value
	err = columns(dir, schemas.Marks, []string{"category", "rank", "k", "address"}, nil, func(column int, values []parquet.Value, base int) {
		for i, v := range values {
			switch {
			case column > 0:
				if r := base + i; r < len(rows) && rows[r] != nil {
					rows[r] = append(rows[r], v.Clone())
				}
			case !v.IsNull() && string(v.ByteArray()) == gradientTag:
				rows = append(rows, []parquet.Value{})
			default:
				rows = append(rows, nil)
			}
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if len(r) == 3 {
			tags = append(tags, tagged{integer(r[0]), integer(r[1]), r[2].Uint64()})
		}
	}
	return tags, nil
}

// marked is the first event of a device whose mark is as high.
type marked struct{ mark, seq int64 }

// markOrder lists, by rank and device, where the highest mark so far rises.
func markOrder(dir string) (map[[2]int64][]marked, error) {
	var rank, device, seq []int64
	order := map[[2]int64][]marked{}
	err := columns(dir, schemas.Events, []string{"rank", "device", "seq", "mark"}, nil, func(column int, values []parquet.Value, base int) {
		for i, v := range values {
			switch column {
			case 0:
				rank = append(rank, integer(v))
			case 1:
				device = append(device, integer(v))
			case 2:
				seq = append(seq, integer(v))
			case 3:
				r := base + i
				if r >= len(seq) || r >= len(rank) || r >= len(device) || v.IsNull() {
					continue
				}
				p := [2]int64{rank[r], device[r]}
				if list, k := order[p], v.Int64(); len(list) == 0 || list[len(list)-1].mark < k {
					order[p] = append(list, marked{k, seq[r]})
				}
			}
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return order, err
}

func integer(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}
