package store

import (
	"fmt"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
)

// eventClocks reads when each event of each device happened.
func eventClocks(dir string, needed bool) ([]schemas.EventClock, error) {
	type row struct {
		rank, device int32
		seq, ns      int64
	}
	var rows []row
	size := func(n int64) { rows = make([]row, 0, min(n, 1<<20)) } // a damaged file may claim any number
	err := columns(dir, schemas.Events, []string{"rank", "device", "seq", "time_ns"}, size, func(column int, values []parquet.Value, base int) {
		if column == 0 {
			rows = append(rows, make([]row, len(values))...)
		}
		for i, v := range values {
			if base+i >= len(rows) {
				return
			}
			switch r := &rows[base+i]; column {
			case 0:
				r.rank = v.Int32()
			case 1:
				r.device = v.Int32()
			case 2:
				r.seq = v.Int64()
			case 3:
				r.ns = v.Int64()
			}
		}
	})
	if err = optional(err, needed); err != nil {
		return nil, err
	}
	var out []schemas.EventClock
	for _, r := range rows {
		k := len(out) - 1 // rows are in the order of rank, device and seq
		if k < 0 || out[k].Rank != r.rank || out[k].Device != r.device {
			out = append(out, schemas.EventClock{Rank: r.rank, Device: r.device})
			k++
		}
		if r.seq != int64(len(out[k].TimeNS))+1 {
			return nil, fmt.Errorf("%s: event %d of rank %d, device %d is out of its place", schemas.Events.File(), r.seq, r.rank, r.device)
		}
		out[k].TimeNS = append(out[k].TimeNS, r.ns)
	}
	return out, nil
}
