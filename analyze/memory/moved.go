package memory

import (
	"github.com/dpsight/dpsight/schemas"
)

// Moved lists the figures that differ between two breakdowns of the same run: for each device the peak, then its
// categories in the order of precedence. A device that only one of the two breakdowns has is left out.
func Moved(before, after []DeviceBreakdown) []schemas.Moved {
	out := []schemas.Moved{}
	for i := range after {
		now := &after[i]
		for k := range before {
			was := &before[k]
			if was.Rank != now.Rank || was.Device != now.Device {
				continue
			}
			add := func(c *schemas.Category, was, is int64) {
				if was != is {
					out = append(out, schemas.Moved{Rank: now.Rank, Device: now.Device, Category: c, BeforeBytes: was,
						AfterBytes: is})
				}
			}
			add(nil, was.AllocatedBytes, now.AllocatedBytes)
			for _, c := range schemas.Categories {
				add(&c, was.Category(c).Bytes, now.Category(c).Bytes)
			}
		}
	}
	return out
}
