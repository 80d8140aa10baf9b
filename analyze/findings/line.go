package findings

import (
	"cmp"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// A LinePart is the part of a finding's bytes that one line of the script requested.
type LinePart struct {
	Line  *schemas.Line
	Bytes int64
}

// part returns how many bytes of block i belong to a finding.
type part func(i int, a *schemas.Allocation) int64

// line sets the line of the script that requested most of a finding's bytes. part says how many bytes of each block
// belong to the finding. line also sets the phase and the module that requested the bytes, and the holder that keeps
// them, each only if it is the same for more than half of the bytes.
func (x *evidence) line(f *Finding, part part) {
	f.OfBlocks = true
	by, phases, modules := map[int64]int64{}, map[string]int64{}, map[int64]int64{}
	holders, tags, cycles, all := map[string]int64{}, map[string]int64{}, map[string]int64{}, int64(0)
	for i, a := range x.l.Allocs {
		bytes := part(i, a)
		if bytes == 0 {
			continue
		}
		all += bytes
		phases[a.Phase] += bytes
		modules[a.Module] += bytes
		holder := x.holder(i, f.At.Event)
		if h := x.holders.Of(a); h == nil {
			tags[holder] += bytes
		} else {
			holders[holder] += bytes
			if h.Kind == schemas.HeldByCycle {
				cycles[holder] += bytes
			}
		}
		if a.Line > 0 {
			by[a.Line] += bytes
		}
	}
	addTags(holders, tags)
	f.Phase, f.Holder = mostOf(phases, all), mostOf(holders, all)
	// A circle is found by the names of each of its objects, and must not count more than once.
	if sum := sumOf(cycles); sum > all-sum {
		f.Cycle, f.Holder = true, cmp.Or(f.Holder, largest(cycles, sum)[0].Name)
	}
	f.Module = x.modules.ByID[mostOf(modules, all)]
	lines := grouping.LinesOf(x.in, x.p.Rank)
	for id, bytes := range by {
		l := lines[id]
		if most := f.Line; l != nil && bytes > 0 && (most == nil || bytes > most.Bytes ||
			bytes == most.Bytes && id < most.Line.Line) {
			f.Line = &LinePart{l, bytes}
		}
	}
}

// holder returns what keeps a block: the holder that the agent found, or else the script's name for the block just
// after an event; "" if neither is known.
func (x *evidence) holder(i int, event int64) string {
	if h := x.holders.Of(x.l.Allocs[i]); h != nil {
		return grouping.HolderName(h)
	}
	return x.tag(i, event)
}

// tag returns the script's name for a block just after an event; "" if the script names none.
func (x *evidence) tag(i int, event int64) string {
	for _, o := range x.l.Owners[i] {
		if o.Category == schemas.Script && o.Evidence == schemas.Tagged && o.HoldsAt(event) {
			return o.Name
		}
	}
	return ""
}

// addTags adds the bytes of blocks for which the agent found no holder, by their tags. The agent's looks for holders
// are rarer than tags. A tag counts under the holder whose name, without its class and its entry, is the tag's: tag
// "history" counts under holder "Net.history[*]". If several holders have that name, the tag counts under the largest.
func addTags(holders, tags map[string]int64) {
	known := largest(holders, sumOf(holders))
	for tag, bytes := range tags {
		holder := tag
		for _, k := range known {
			if path := withoutEntry(k.Name); tag != "" && (path == tag || strings.HasSuffix(path, "."+tag)) {
				holder = k.Name
				break
			}
		}
		holders[holder] += bytes
	}
}

// withoutEntry returns the container of a holder that is an entry: "kept" of "kept['a'][*]".
func withoutEntry(holder string) string {
	for strings.HasSuffix(holder, "]") {
		at := strings.LastIndexByte(holder, '[')
		if at < 0 {
			break
		}
		holder = holder[:at]
	}
	return holder
}

func sumOf(by map[string]int64) (sum int64) {
	for _, bytes := range by {
		sum += bytes
	}
	return sum
}

// mostOf returns the key with more than half of all bytes; the zero value if no key has more than half.
func mostOf[K comparable](by map[K]int64, all int64) (most K) {
	for k, bytes := range by {
		if bytes > all-bytes {
			return k
		}
	}
	return most
}

// counted returns a part with the bytes of blocks that count under one of the categories at the peak.
func (x *evidence) counted(categories ...schemas.Category) part {
	return x.countedAfter(x.d.At.Event, categories...)
}

// countedAfter returns a part with the bytes of blocks that count under one of the categories just after an event.
func (x *evidence) countedAfter(event int64, categories ...schemas.Category) part {
	places := map[int]bool{}
	for _, c := range categories {
		places[memory.CategoryPlace(c)] = true
	}
	return func(i int, a *schemas.Allocation) int64 {
		if !a.LiveAt(event) {
			return 0
		}
		if now, _ := x.l.Category(i, event); !places[now] {
			return 0
		}
		return a.RequestedBytes
	}
}

// where limits a part to the blocks that want accepts.
func (p part) where(want func(a *schemas.Allocation) bool) part {
	return func(i int, a *schemas.Allocation) int64 {
		bytes := p(i, a)
		if bytes == 0 || !want(a) {
			return 0
		}
		return bytes
	}
}
