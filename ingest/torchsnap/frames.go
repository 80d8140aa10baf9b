package torchsnap

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/ingest/pickle"
)

// growingFrames is a list of frames that comes in several batches. growingFrames is interned only when it is used,
// since interning it after each batch would take quadratic time.
type growingFrames struct {
	ids      []uint32
	interned uint32
}

const whatFrame = "a frame"

// maxFrameText is the largest length of the name of a function or a file. A longer text is no name, and tables would
// repeat it many times.
const maxFrameText = 4096

func (b *builder) frame(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	var f Frame
	if !isNew {
		f = b.stacks.frames[dict.ID]
	}
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		v := items[i+1]
		switch key := items[i].ID(); key {
		case kName, kFilename:
			text := ""
			switch v.Kind() {
			case pickle.String:
				if text = b.d.Text(v.ID()); len(text) > maxFrameText {
					text = strings.ToValidUTF8(text[:maxFrameText], "") + "…"
					b.passOver(fmt.Errorf("key %q of %s holds a text of more than %d bytes", words[key], whatFrame,
						maxFrameText))
				}
			case pickle.None:
			default:
				b.passOver(b.wrong(whatFrame, key, "a str", v))
			}
			if key == kName {
				f.Function = text
			} else {
				f.File = text
			}
		case kLine:
			switch {
			case v.IsInt():
				f.Line = v.Int()
			case v.Kind() == pickle.None:
				f.Line = 0
			default:
				b.passOver(b.wrong(whatFrame, key, "an int", v))
			}
		}
	}
	id, isNew := b.stacks.frame(f)
	dict.ID = uint64(id)
	if isNew {
		return dict, b.d.Charge(160)
	}
	return dict, nil
}

func (b *builder) newStack(items []pickle.Value) (pickle.Ref, error) {
	ids := b.scratch[:0]
	for _, v := range items {
		ref := v.Ref()
		if ref.Tag != tagFrame {
			b.noFrame(v)
			continue
		}
		ids = append(ids, uint32(ref.ID))
	}
	b.scratch, b.wholeStack = ids, len(ids) == len(items)
	id, err := b.internStack(ids)
	return pickle.Ref{Tag: tagStack, ID: uint64(id)}, err
}

func (b *builder) noFrame(v pickle.Value) {
	b.passOver(fmt.Errorf("a list of frames holds %s", describe(v)))
}

func (b *builder) internStack(ids []uint32) (uint32, error) {
	id, isNew := b.stacks.stack(ids)
	if isNew {
		return id, b.d.Charge(24 + 4*int64(len(ids)))
	}
	return id, nil
}

func (b *builder) extendFrames(l pickle.Ref, items []pickle.Value) (pickle.Ref, error) {
	if l.Tag == tagStack {
		b.growing = append(b.growing, growingFrames{ids: append([]uint32(nil), b.stacks.FrameIDs(uint32(l.ID))...)})
		if err := b.d.Charge(64 + 8*int64(len(b.growing[len(b.growing)-1].ids))); err != nil {
			return l, err
		}
		l = pickle.Ref{Tag: tagFrames, ID: uint64(len(b.growing) - 1)}
	}
	g := &b.growing[l.ID]
	for _, v := range items {
		ref := v.Ref()
		if ref.Tag != tagFrame {
			b.noFrame(v)
			continue
		}
		g.ids = append(g.ids, uint32(ref.ID))
	}
	return l, b.d.Charge(8 * int64(len(items)))
}

// stackOf returns the id of the stack in a key's value; ok is false if the value is no list of frames.
func (b *builder) stackOf(v pickle.Value) (id uint32, ok bool, err error) {
	switch ref := v.Ref(); ref.Tag {
	case tagStack:
		return uint32(ref.ID), true, nil
	case tagFrames:
		g := &b.growing[ref.ID]
		if g.interned == 0 {
			g.interned, err = b.internStack(g.ids)
		}
		return g.interned, true, err
	case 0:
		return 0, v.Kind() == pickle.None || v.Kind() == pickle.List, nil
	}
	return 0, false, nil
}
