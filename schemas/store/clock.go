package store

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas"
)

// eventClocks reads the time of each event of each device.
func eventClocks(dir string, needed bool) (out []schemas.EventClock, err error) {
	var wrong error
	names := []string{"rank", "device", "seq", "time_ns"}
	err = columns(dir, schemas.Events, names, func(int64) {}, func(p []*piece, n int) {
		for i := range n {
			k, rank, device := len(out)-1, int32(p[0].ints[i]), int32(p[1].ints[i])
			if k < 0 || out[k].Rank != rank || out[k].Device != device { // rows are sorted by rank and device
				out, k = append(out, schemas.EventClock{Rank: rank, Device: device}), k+1
			}
			c := &out[k]
			if seq := p[2].ints[i]; seq != int64(len(c.TimeNS))+1 && wrong == nil {
				wrong = fmt.Errorf("%s: event %d of rank %d, device %d is out of its place", schemas.Events.File(), seq,
					rank, device)
			}
			c.TimeNS = append(c.TimeNS, p[3].ints[i])
		}
	})
	if err = optional(err, needed); err == nil {
		err = wrong
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
