package findings

// AmbiguousTagsFacts are the facts of an [AmbiguousTags] finding.
type AmbiguousTagsFacts struct{ Tags int64 }

// ambiguousTags reports tags that ingest ignored because they match several blocks.
func (x *evidence) ambiguousTags() []Finding {
	c := &x.d.Conservation
	if c.AmbiguousTags == 0 {
		return nil
	}
	f := x.finding(AmbiguousTags)
	f.Facts = AmbiguousTagsFacts{int64(c.AmbiguousTags)}
	return []Finding{f}
}
