package report

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/timeline"
)

// tellTimelines writes the warnings of each device.
func tellTimelines(doc timeline.CategoryTimelineDocument) timeline.CategoryTimelineDocument {
	doc.Runs = slices.Clone(doc.Runs)
	for i := range doc.Runs {
		r := &doc.Runs[i]
		r.Devices = slices.Clone(r.Devices)
		for k := range r.Devices {
			d := &r.Devices[k]
			d.Warnings = slices.Clone(d.Warnings)
			for _, u := range d.Untagged {
				d.Warnings = append(d.Warnings, untaggedWords(u))
			}
		}
	}
	return doc
}
