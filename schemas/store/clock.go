package store

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas"
)

// eventClocks reads when each event of each device happened.
func eventClocks(dir string, needed bool) ([]schemas.EventClock, error) {
	type row struct {
		rank, device int32
		seq, ns      int64
	}
	rows, err := readColumns(dir, schemas.Events, []column[row]{
		{name: "rank", int: func(r *row, v int64) { r.rank = int32(v) }},
		{name: "device", int: func(r *row, v int64) { r.device = int32(v) }},
		{name: "seq", int: func(r *row, v int64) { r.seq = v }},
		{name: "time_ns", int: func(r *row, v int64) { r.ns = v }},
	}, nil)
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
			return nil, fmt.Errorf("%s: event %d of rank %d, device %d is out of its place", schemas.Events.File(),
				r.seq, r.rank, r.device)
		}
		out[k].TimeNS = append(out[k].TimeNS, r.ns)
	}
	return out, nil
}
