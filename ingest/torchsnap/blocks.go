package torchsnap

import (
	"fmt"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

const (
	whatBlock   = "a block"
	whatHistory = "a block's history entry"
)

type block struct {
	Block
	hasAddress bool
	requested  int64        // requested_size; −1 = absent
	history    pickle.Value // list of earlier requests in older formats, newest first
}

type history struct {
	realSize int64
	stack    uint32
}

func (b *builder) block(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	if isNew {
		dict.ID = uint64(len(b.blocks))
		b.blocks = append(b.blocks, block{Block: Block{Size: -1, RequestedSize: -1}, requested: -1})
		if err := b.d.Charge(160); err != nil {
			return dict, err
		}
	}
	k := &b.blocks[dict.ID]
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		if err := b.blockField(k, items[i].ID(), items[i+1]); err != nil {
			if key := items[i].ID(); key == kRequestedSize || key == kFrames || key == kHistory {
				b.passOver(err)
				continue
			}
			return b.fail(err)
		}
	}
	return dict, nil
}

func (b *builder) blockField(k *block, key uint32, v pickle.Value) error {
	var ok bool
	want := "an int"
	switch key {
	case kAddress:
		ok = v.IsInt()
		k.Address, k.hasAddress = v.Uint(), true
	case kSize:
		k.Size, ok = bytesOf(v)
	case kRequestedSize:
		if k.requested, ok = bytesOf(v); !ok {
			k.requested = -1
		}
	case kState:
		want = "a block's state"
		if ok = v.Kind() == pickle.String; ok {
			k.State, ok = stateOf(b.d.Text(v.ID()))
		}
		if !ok && v.Kind() == pickle.String {
			return fmt.Errorf("key %q of %s holds %q, which is no state of a block", words[key], whatBlock,
				b.d.Text(v.ID()))
		}
	case kFrames:
		want = "a list of frames"
		var err error
		if k.Stack, ok, err = b.stackOf(v); err != nil {
			return err
		}
	case kHistory:
		want = "a list of earlier requests"
		if ok = isList(v); ok {
			k.history = v
		}
	default:
		return nil
	}
	if !ok {
		return b.wrong(whatBlock, key, want, v)
	}
	return nil
}

// stateOf returns a block's state from torch's word. stateOf also accepts the word that torch's documentation uses but
// its code does not write.
func stateOf(word string) (string, bool) {
	switch word {
	case schemas.BlockActive:
		return schemas.BlockActive, true
	case schemas.BlockPendingFree, "active_awaiting_free":
		return schemas.BlockPendingFree, true
	case schemas.BlockInactive:
		return schemas.BlockInactive, true
	}
	return "", false
}

func (b *builder) history(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	if isNew {
		dict.ID = uint64(len(b.histories))
		b.histories = append(b.histories, history{})
		if err := b.d.Charge(32); err != nil {
			return dict, err
		}
	}
	h := &b.histories[dict.ID]
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		v := items[i+1]
		var ok bool
		switch key := items[i].ID(); key {
		case kRealSize:
			if h.realSize, ok = bytesOf(v); !ok {
				h.realSize = -1
				b.passOver(b.wrong(whatHistory, key, "an int", v))
			}
		case kFrames:
			var err error
			if h.stack, ok, err = b.stackOf(v); err == nil && !ok {
				err = b.wrong(whatHistory, key, "a list of frames", v)
			}
			if err != nil {
				b.passOver(err)
			}
		}
	}
	return dict, nil
}

// request sets a block's requested size from the key that the snapshot's era uses.
func (b *builder) request(k *block) {
	if k.State == schemas.BlockInactive {
		return
	}
	k.RequestedSize = k.requested
	past := b.items(k.history)
	if len(past) == 0 {
		return
	}
	if past[0].Ref().Tag != tagHistory {
		b.passOver(b.wrong(whatBlock, kHistory, "a list of earlier requests", past[0]))
		return
	}
	h := b.histories[past[0].Ref().ID]
	if k.requested < 0 {
		k.RequestedSize = h.realSize
	}
	if k.Stack == 0 {
		k.Stack = h.stack
	}
}
