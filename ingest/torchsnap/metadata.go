package torchsnap

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/ingest/pickle"
)

// maxJSON is the largest length of the text of one metadata dictionary. The parts of a metadata dictionary may be
// shared, so a small dictionary may have a very long text.
const maxJSON = 64 << 10

func (b *builder) userMetadata(r *row, v pickle.Value) error {
	switch v.Kind() {
	case pickle.None:
		r.mark, r.line, r.text = 0, 0, 0
	case pickle.String:
		if v.ID() == 0 {
			r.mark, r.line, r.text = 0, 0, 0
			return nil
		}
		if n, line, ok := markAndLine(b.d.Text(v.ID())); ok {
			r.mark, r.line, r.text = n, line, 0
			return nil
		}
		id, ok := b.events.textIDs[v.ID()]
		if !ok {
			id = b.events.addText(b.d.Text(v.ID()))
			b.events.textIDs[v.ID()] = id
		}
		r.mark, r.line, r.text = 0, 0, id
	case pickle.Dict:
		text := string(b.appendJSON(nil, v))
		id, err := b.d.InternText(text)
		if err != nil {
			return err
		}
		known, ok := b.events.textIDs[id]
		if !ok {
			known = b.events.addText(text)
			b.events.textIDs[id] = known
		}
		r.mark, r.line, r.text = 0, 0, known
	default:
		return b.wrong(whatEvent, kUserMetadata, "a str or a dict", v)
	}
	return nil
}

func (e *events) addText(s string) uint32 {
	e.texts = append(e.texts, s)
	return uint32(len(e.texts) - 1)
}

// markAndLine parses the agent's metadata: a mark, optionally followed by an at sign and the number of a line.
func markAndLine(s string) (mark, line uint32, ok bool) {
	k, l, found := strings.Cut(s, "@")
	mark, ok = decimal(k)
	if found && ok {
		line, ok = decimal(l)
	}
	if !ok {
		return 0, 0, false
	}
	return mark, line, true
}

// decimal parses a mark: a number below 2^32 that has only digits.
func decimal(s string) (uint32, bool) {
	if len(s) == 0 || len(s) > 10 {
		return 0, false
	}
	n := uint64(0)
	for i := 0; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return uint32(n), n <= math.MaxUint32
}

// appendJSON appends v as compact JSON, in the form in which torch writes a metadata dictionary. At maxJSON bytes,
// appendJSON stops with a "…". A dictionary that looks like a part of a snapshot has already become a row, so
// appendJSON writes it as null.
func (b *builder) appendJSON(out []byte, v pickle.Value) []byte {
	if len(out) > maxJSON {
		return append(out, `"…"`...)
	}
	switch v.Kind() {
	case pickle.Bool:
		return strconv.AppendBool(out, v.Bool())
	case pickle.Int:
		return strconv.AppendInt(out, v.Int(), 10)
	case pickle.Uint:
		return strconv.AppendUint(out, v.Uint(), 10)
	case pickle.BigInt:
		return append(out, b.d.Text(v.ID())...)
	case pickle.Float:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.AppendFloat(out, f, 'g', -1, 64)
		}
	case pickle.String:
		return appendQuoted(out, b.d.Text(v.ID()))
	case pickle.List:
		out = append(out, '[')
		if v.Ref().Tag == tagList {
			for i, item := range b.lists[v.Ref().ID].items {
				if len(out) > maxJSON {
					break
				}
				if i > 0 {
					out = append(out, ',')
				}
				out = b.appendJSON(out, item)
			}
		}
		return append(out, ']')
	case pickle.Dict:
		if tag := v.Ref().Tag; tag != tagDict && tag != 0 {
			break
		}
		out = append(out, '{')
		if v.Ref().Tag == tagDict {
			items := b.dicts[v.Ref().ID]
			for i := 0; i < len(items) && len(out) <= maxJSON; i += 2 {
				if i > 0 {
					out = append(out, ',')
				}
				if items[i].Kind() == pickle.String {
					out = appendQuoted(out, b.d.Text(items[i].ID()))
				} else {
					out = appendQuoted(out, string(b.appendJSON(nil, items[i])))
				}
				out = append(out, ':')
				out = b.appendJSON(out, items[i+1])
			}
		}
		return append(out, '}')
	}
	return append(out, "null"...)
}

func appendQuoted(out []byte, s string) []byte {
	if len(s) > maxJSON {
		s = s[:maxJSON]
	}
	q, err := json.Marshal(s)
	if err != nil { // marshalling a string cannot fail
		return append(out, `""`...)
	}
	return append(out, q...)
}
