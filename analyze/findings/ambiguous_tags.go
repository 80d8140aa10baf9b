package findings

import (
	"fmt"
)

// ambiguousTags looks for tags that count for nothing.
func (x *evidence) ambiguousTags() []Finding {
	c := &x.d.Conservation
	if c.AmbiguousTags == 0 {
		return nil
	}
	f := x.finding(AmbiguousTags)
	f.count("ambiguous tags", int(c.AmbiguousTags), "ingest.json: devices[].ambiguous_tags")
	f.Sentence = fmt.Sprintf("%d tags fit no single life of their address, and count for nothing.", c.AmbiguousTags)
	return []Finding{f}
}
