package torchsnap

import (
	"fmt"

	"github.com/dpsight/dpsight/ingest/pickle"
)

// A builder turns the containers of a snapshot into rows as the decoder reads them, innermost first. A dictionary's
// keys show what it is (see kindOf), since its place in the snapshot is not known yet. So a row counts only if the
// snapshot's lists lead to it. For an unrelated dictionary that looks like an event, the builder makes a row that is
// not used. For a broken dictionary, it makes an error that is reported only if the snapshot uses the dictionary.
type builder struct {
	d      *pickle.Decoder
	stacks *Stacks

	events    events
	traces    []trace
	growing   []growingFrames
	segments  []segment
	blocks    []block
	histories []history
	notes     []Annotation
	roots     []root
	lists     []anyList
	dicts     [][]pickle.Value // keys and values of each dictionary, in turn
	bad       []error
	odd       oddities
	scratch   []uint32
	// wholeStack is true if all items of the last new stack were frames. If wholeStack is false, the decoder passes
	// each equal list to the builder, which then counts the other items each time.
	wholeStack bool
}

// An anyList is a list whose kind its items do not show: of segments, blocks, traces or annotations, or unrelated.
type anyList struct {
	items []pickle.Value
	taken bool // the list is some segment's blocks: a list shared by two segments would multiply blocks
}

// A root is a dictionary with segments or traces.
type root struct{ segments, traces, settings, annotations pickle.Value }

func newBuilder(d *pickle.Decoder, stacks *Stacks) *builder {
	for _, w := range words[1:] {
		d.Intern(w)
	}
	if stacks == nil {
		stacks = NewStacks()
	}
	return &builder{d: d, stacks: stacks, events: newEvents(d)}
}

// fail returns a container that stands for an error, which is reported if the snapshot uses the container.
func (b *builder) fail(err error) (pickle.Ref, error) {
	b.bad = append(b.bad, fmt.Errorf("at byte %d: %w", b.d.Offset(), err))
	return pickle.Ref{Tag: tagBad, ID: uint64(len(b.bad) - 1)}, b.d.Charge(128)
}

// wrong returns the error for a key whose value has the wrong type. If the value itself is broken, wrong returns the
// value's error.
func (b *builder) wrong(what string, key uint32, want string, got pickle.Value) error {
	if err := b.broken(got); err != nil {
		return err
	}
	return fmt.Errorf("key %q of %s holds %s, want %s", words[key], what, describe(got), want)
}

// broken returns the error that v stands for, or the error of its first item if v is a list.
func (b *builder) broken(v pickle.Value) error {
	if items := b.items(v); len(items) > 0 {
		v = items[0]
	}
	if v.Ref().Tag == tagBad {
		return b.bad[v.Ref().ID]
	}
	return nil
}

// Dict implements [pickle.Builder].
func (b *builder) Dict(dict pickle.Ref, items []pickle.Value) (pickle.Ref, error) {
	switch dict.Tag {
	case tagBad:
		return dict, nil
	case 0, tagDict:
		kind := uint8(0)
		for i := 0; i < len(items) && kind == 0; i += 2 {
			if items[i].Kind() == pickle.String {
				kind = kindOf(items[i].ID())
			}
		}
		if kind == 0 {
			return b.anyDict(dict, items)
		}
		if dict.Tag == tagDict { // the dictionary came in several batches, which all belong to its final kind
			items = append(b.dicts[dict.ID], items...)
		}
		return b.fill(pickle.Ref{Tag: kind}, true, items)
	}
	return b.fill(dict, false, items)
}

// fill sets fields of the row for a dictionary of a known kind.
func (b *builder) fill(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	switch dict.Tag {
	case tagEvent:
		return b.event(dict, isNew, items)
	case tagFrame:
		return b.frame(dict, isNew, items)
	case tagSegment:
		return b.segment(dict, isNew, items)
	case tagBlock:
		return b.block(dict, isNew, items)
	case tagHistory:
		return b.history(dict, isNew, items)
	case tagAnnotation:
		return b.annotation(dict, isNew, items)
	}
	return b.root(dict, isNew, items)
}

func (b *builder) anyDict(dict pickle.Ref, items []pickle.Value) (pickle.Ref, error) {
	if dict.Tag == 0 {
		dict = pickle.Ref{Tag: tagDict, ID: uint64(len(b.dicts))}
		b.dicts = append(b.dicts, nil)
	}
	b.dicts[dict.ID] = append(b.dicts[dict.ID], items...)
	return dict, b.d.Charge(24 + 16*int64(len(items)))
}

// List implements [pickle.Builder].
func (b *builder) List(l pickle.Ref, items []pickle.Value) (pickle.Ref, error) {
	switch l.Tag {
	case 0:
		switch items[0].Ref().Tag {
		case tagEvent:
			return b.newTrace(items)
		case tagFrame:
			return b.newStack(items)
		}
		l = pickle.Ref{Tag: tagList, ID: uint64(len(b.lists))}
		b.lists = append(b.lists, anyList{})
	case tagBad:
		return l, nil
	case tagTrace:
		return l, b.extendTrace(&b.traces[l.ID], items)
	case tagStack, tagFrames:
		return b.extendFrames(l, items)
	}
	b.lists[l.ID].items = append(b.lists[l.ID].items, items...)
	return l, b.d.Charge(32 + 16*int64(len(items)))
}

// Interned implements [pickle.Interner]: stacks are interned.
func (b *builder) Interned(l pickle.Ref) bool { return l.Tag == tagStack && b.wholeStack }

// Tuple implements [pickle.Builder]. The only tuples of a snapshot are pool ids.
func (b *builder) Tuple(items []pickle.Value) (pickle.Ref, error) {
	if len(items) == 2 && items[0].Kind() == pickle.Int && items[1].Kind() == pickle.Int {
		if x, y := items[0].Uint(), items[1].Uint(); x < 1<<32 && y < 1<<32 {
			return pickle.Ref{Tag: tagPair, ID: PoolID(uint32(x), uint32(y))}, nil
		}
	}
	return pickle.Ref{Tag: tagTuple}, nil
}

func (b *builder) root(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	if isNew {
		dict.ID = uint64(len(b.roots))
		b.roots = append(b.roots, root{})
	}
	r := &b.roots[dict.ID]
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		switch v := items[i+1]; items[i].ID() {
		case kSegments:
			r.segments = v
		case kDeviceTraces:
			r.traces = v
		case kAllocatorSettings:
			r.settings = v
		case kExternalAnnotations:
			r.annotations = v
		}
	}
	return dict, b.d.Charge(64)
}
