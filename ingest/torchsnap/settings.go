package torchsnap

import (
	"fmt"
	"math"
	"strconv"

	"github.com/dpsight/dpsight/ingest/pickle"
)

const (
	whatSettings   = "the allocator's settings"
	whatAnnotation = "an annotation"
	whatSnapshot   = "the snapshot"
)

func (b *builder) settings(v pickle.Value) Settings {
	s := Settings{MaxSplitSize: -1}
	if v.Kind() == 0 || v.Kind() == pickle.None {
		return s
	}
	if v.Kind() != pickle.Dict || v.Ref().Tag != 0 && v.Ref().Tag != tagDict {
		b.passOver(b.wrong(whatSnapshot, kAllocatorSettings, "a dict", v))
		return s
	}
	s.Present = true
	if v.Ref().Tag == 0 {
		return s
	}
	items := b.dicts[v.Ref().ID]
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		if err := b.setting(&s, items[i].ID(), items[i+1]); err != nil {
			b.passOver(err)
		}
	}
	return s
}

func (b *builder) setting(s *Settings, key uint32, v pickle.Value) error {
	var ok bool
	want := "an int"
	switch key {
	case kAllocConf:
		want = "a str"
		if ok = v.Kind() == pickle.String; ok {
			s.AllocConf = b.d.Text(v.ID())
		}
	case kMaxSplitSize:
		ok = v.IsInt()
		if ok {
			s.MaxSplitSize = max(v.Int(), -1) // the maximum of size_t also means no limit
		}
	case kLargeSegmentSize:
		s.LargeSegmentSize, ok = bytesOf(v)
	case kGarbageCollection:
		want = "a float"
		switch {
		case v.Kind() == pickle.Float:
			s.GarbageCollectionThreshold, ok = v.Float(), true
		case v.IsInt():
			s.GarbageCollectionThreshold, ok = float64(v.Int()), true
		}
	case kExpandable:
		want = "a bool"
		ok = v.Kind() == pickle.Bool
		s.ExpandableSegments = v.Bool()
	case kRoundup:
		return b.roundup(s, v)
	default:
		text, plain := b.plainText(v)
		if plain {
			if s.Other == nil {
				s.Other = map[string]string{}
			}
			s.Other[b.d.Text(key)] = text
		}
		return nil
	}
	if !ok {
		return b.wrong(whatSettings, key, want, v)
	}
	return nil
}

// roundup reads the setting roundup_power2_divisions, a dictionary such as {"1": divisions, "2": …}.
func (b *builder) roundup(s *Settings, v pickle.Value) error {
	tag := v.Ref().Tag
	if v.Kind() != pickle.Dict || tag != 0 && tag != tagDict {
		return b.wrong(whatSettings, kRoundup, "a dict", v)
	}
	if tag == 0 {
		return nil
	}
	items := b.dicts[v.Ref().ID]
	for i := 0; i < len(items); i += 2 {
		text, _ := b.plainText(items[i])
		class, err := strconv.ParseInt(text, 10, 64)
		divisions := items[i+1]
		if err != nil || divisions.Kind() != pickle.Int {
			return fmt.Errorf("key %q of %s holds something else than divisions by size class", words[kRoundup],
				whatSettings)
		}
		if divisions.Int() > 0 {
			if s.RoundupPower2Divisions == nil {
				s.RoundupPower2Divisions = map[int64]int64{}
			}
			s.RoundupPower2Divisions[class] = divisions.Int()
		}
	}
	return nil
}

// plainText returns a plain value as text; ok is false for containers, bytes and None.
func (b *builder) plainText(v pickle.Value) (text string, ok bool) {
	switch v.Kind() {
	case pickle.String, pickle.BigInt:
		return b.d.Text(v.ID()), true
	case pickle.Bool:
		return strconv.FormatBool(v.Bool()), true
	case pickle.Int:
		return strconv.FormatInt(v.Int(), 10), true
	case pickle.Uint:
		return strconv.FormatUint(v.Uint(), 10), true
	case pickle.Float:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), true
	}
	return "", false
}

func (b *builder) annotation(dict pickle.Ref, isNew bool, items []pickle.Value) (pickle.Ref, error) {
	if isNew {
		dict.ID = uint64(len(b.notes))
		b.notes = append(b.notes, Annotation{})
		if err := b.d.Charge(96); err != nil {
			return dict, err
		}
	}
	n := &b.notes[dict.ID]
	for i := 0; i < len(items); i += 2 {
		if items[i].Kind() != pickle.String {
			continue
		}
		v := items[i+1]
		ok, want := true, "an int"
		switch key := items[i].ID(); key {
		case kName, kStage:
			want = "a str"
			if ok = v.Kind() == pickle.String; ok && key == kName {
				n.Name = b.d.Text(v.ID())
			} else if ok {
				n.Stage = b.d.Text(v.ID())
			}
		case kDevice:
			if ok = v.Kind() == pickle.Int && v.Int() >= -1 && v.Int() <= math.MaxInt32; ok {
				n.Device = int(v.Int())
			}
		case kTimeUS:
			if ok = v.Kind() == pickle.Int && v.Int() >= 0 && v.Int() <= math.MaxInt64/1000; ok {
				n.TimeNS = v.Int() * 1000
			}
		}
		if !ok {
			b.passOver(b.wrong(whatAnnotation, items[i].ID(), want, v))
		}
	}
	return dict, nil
}

func (b *builder) annotations(v pickle.Value) []Annotation {
	if v.Kind() == 0 || v.Kind() == pickle.None {
		return nil
	}
	if !isList(v) {
		b.passOver(b.wrong(whatSnapshot, kExternalAnnotations, "a list", v))
		return nil
	}
	var out []Annotation
	for _, item := range b.items(v) {
		if item.Ref().Tag != tagAnnotation {
			b.passOver(fmt.Errorf("an external annotation is %s", describe(item)))
			continue
		}
		out = append(out, b.notes[item.Ref().ID])
	}
	return out
}
