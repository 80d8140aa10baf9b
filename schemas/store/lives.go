package store

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// lives reads all blocks of a run, by device.
func lives(dir string) ([]schemas.Lives, error) {
	owned, failed := map[[2]int64]*ownerships{}, make(chan error, 1)
	go func() {
		var err error
		owned, err = readOwnerships(dir)
		failed <- err
	}()
	blocks, err := readBlocks(dir)
	if err = cmp.Or(err, <-failed); err != nil {
		return nil, err
	}
	var out []schemas.Lives
	for _, l := range blocks {
		o := owned[[2]int64{int64(l.Rank), int64(l.Device)}]
		if o == nil {
			o = &ownerships{}
		}
		o.give(l)
		out = append(out, *l)
	}
	return out, nil
}

// maxSeq is the largest event number that the columns can hold.
const maxSeq = math.MaxUint32

// readBlocks reads the blocks without their owners, in the order of the table.
func readBlocks(dir string) (all []*schemas.Lives, err error) {
	places := map[[2]int64]*schemas.Lives{}
	names := []string{"rank", "device", "alloc_id", "requested_bytes", "block_bytes", "open_bytes", "alloc_seq",
		"free_requested_seq"}
	var l *schemas.Lives
	last := [2]int64{-1, -1}
	var wrong error
	err = columns(dir, schemas.Allocations, names, func(int64) {}, func(p []*piece, n int) {
		for i := range n {
			if place := [2]int64{p[0].ints[i], p[1].ints[i]}; place != last || l == nil {
				if l, last = places[place], place; l == nil {
					l = &schemas.Lives{Rank: int32(place[0]), Device: int32(place[1])}
					places[place], all = l, append(all, l)
				}
			}
			k := len(l.AllocSeq)
			if id := p[2].ints[i]; id != int64(k)+1 && wrong == nil {
				wrong = fmt.Errorf("%s: block %d comes where block %d should", schemas.Allocations.File(), id, k+1)
			}
			if open := p[5]; open != nil && !open.isNull(i) && open.ints[i] != 0 {
				if l.Open == nil {
					l.Open = map[int]int64{}
				}
				l.Open[k] = open.ints[i]
			}
			l.AllocSeq = append(l.AllocSeq, seqOf(p[6].ints[i], &wrong))
			l.FreeSeq = append(l.FreeSeq, seqOf(p[7].ints[i], &wrong))
			l.Requested, l.Block = append(l.Requested, p[3].ints[i]), append(l.Block, p[4].ints[i])
		}
	})
	return all, cmp.Or(err, wrong)
}

// seqOf converts an event's number to the type of the columns. seqOf sets wrong to an error if the number does not fit.
func seqOf(seq int64, wrong *error) uint32 {
	if (seq < 0 || seq > maxSeq) && *wrong == nil {
		*wrong = fmt.Errorf("damaged Parquet file: an event has the number %d", seq)
	}
	return uint32(seq)
}

// ownerships has the owners of a device's blocks, in the order of owners.parquet.
type ownerships struct {
	block            []uint32 // index of the block
	place, evidence  []uint8
	beginSeq, endSeq []uint32
	evidences        []schemas.Evidence
}

func readOwnerships(dir string) (map[[2]int64]*ownerships, error) {
	all := map[[2]int64]*ownerships{}
	names := []string{"rank", "device", "alloc_id", "category", "begin_seq", "end_seq", "evidence"}
	var o *ownerships
	last := [2]int64{-1, -1}
	var wrong error
	category, categoryPlace := "", uint8(schemas.CategoryPlace(""))
	err := columns(dir, schemas.Owners, names, func(int64) {}, func(p []*piece, n int) {
		for i := range n {
			if place := [2]int64{p[0].ints[i], p[1].ints[i]}; place != last || o == nil {
				if o, last = all[place], place; o == nil {
					o = &ownerships{}
					all[place] = o
				}
			}
			id := p[2].ints[i]
			if (id < 1 || id > maxSeq) && wrong == nil {
				wrong = fmt.Errorf("damaged Parquet file: a block has the number %d", id)
			}
			if word := p[3].words[i]; word != category { // nearly all rows have the category of the row before
				category, categoryPlace = word, uint8(schemas.CategoryPlace(word))
			}
			evidence := slices.Index(o.evidences, p[6].words[i])
			if evidence < 0 && len(o.evidences) < math.MaxUint8 {
				evidence, o.evidences = len(o.evidences), append(o.evidences, p[6].words[i])
			}
			o.block, o.place = append(o.block, uint32(id-1)), append(o.place, categoryPlace)
			o.evidence = append(o.evidence, uint8(max(evidence, 0)))
			o.beginSeq = append(o.beginSeq, seqOf(p[4].ints[i], &wrong))
			o.endSeq = append(o.endSeq, seqOf(p[5].ints[i], &wrong))
		}
	})
	return all, cmp.Or(err, wrong)
}

// give assigns the owners to their blocks. give drops owners whose blocks the table of allocations does not have.
func (o *ownerships) give(l *schemas.Lives) {
	n := len(l.AllocSeq)
	o.sort()
	end, _ := slices.BinarySearch(o.block, uint32(n))
	l.OwnersFrom = make([]uint32, n+1)
	for _, b := range o.block[:end] {
		l.OwnersFrom[b+1]++
	}
	for i := range n {
		l.OwnersFrom[i+1] += l.OwnersFrom[i]
	}
	l.Place, l.Evidence, l.BeginSeq, l.EndSeq = o.place[:end], o.evidence[:end], o.beginSeq[:end], o.endSeq[:end]
	l.Evidences = o.evidences
}

// sort orders owners by block. Tables that dpsight wrote have this order already. The owners of one block keep their
// order.
func (o *ownerships) sort() {
	if slices.IsSorted(o.block) {
		return
	}
	order := make([]int, len(o.block))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(o.block[a], o.block[b]) })
	o.block, o.place, o.evidence = picked(o.block, order), picked(o.place, order), picked(o.evidence, order)
	o.beginSeq, o.endSeq = picked(o.beginSeq, order), picked(o.endSeq, order)
}

func picked[T any](s []T, order []int) []T {
	out := make([]T, len(s))
	for i, k := range order {
		out[i] = s[k]
	}
	return out
}
