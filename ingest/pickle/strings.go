package pickle

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// stringCost is the memory of an interned string in addition to its bytes: header, map entry, allocation.
const stringCost = 64

// intern returns the id of a text. Equal texts have the same id. Ids count from 1; 0 is the empty string.
func (d *Decoder) intern(b []byte) (uint32, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if id, ok := d.ids[string(b)]; ok {
		return id, nil
	}
	if err := d.Charge(int64(len(b)) + stringCost); err != nil {
		return 0, err
	}
	return d.add(string(b)), nil
}

func (d *Decoder) add(s string) uint32 {
	id := uint32(len(d.texts))
	d.texts = append(d.texts, s)
	d.ids[s] = id
	return id
}

// Intern interns s before decoding and returns its id. The first n different texts, interned in order, get the ids 1 to
// n. So a builder can use constants as the ids of the keys that it knows.
func (d *Decoder) Intern(s string) uint32 {
	if s == "" {
		return 0
	}
	if id, ok := d.ids[s]; ok {
		return id
	}
	return d.add(s)
}

// Text returns the interned text with an id: a string as valid UTF-8, the raw bytes of a bytes object, or the digits of
// a big integer.
func (d *Decoder) Text(id uint32) string { return d.texts[id] }

// str returns a string value of b. Python writes lone surrogates (from file names that are not UTF-8) in a form that is
// not UTF-8. str replaces lone surrogates.
func (d *Decoder) str(b []byte) (Value, error) {
	if !utf8.Valid(b) {
		b = []byte(strings.ToValidUTF8(string(b), "\uFFFD"))
	}
	id, err := d.intern(b)
	return Value{kind: String, n: uint64(id)}, err
}

func (d *Decoder) bytesValue(b []byte) (Value, error) {
	id, err := d.intern(b)
	return Value{kind: Bytes, n: uint64(id)}, err
}

// quoted parses the argument of protocol 0's STRING opcode: the repr of a Python 2 string.
func (d *Decoder) quoted(line []byte) (Value, error) {
	s := strings.TrimSpace(string(line))
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return Value{}, d.bad("STRING without quotes")
	}
	out, err := unescape(s[1:len(s)-1], false)
	if err != nil {
		return Value{}, d.bad("STRING: %v", err)
	}
	return d.str(out)
}

// rawUnicode parses the argument of protocol 0's UNICODE opcode. The argument's encoding is raw-unicode-escape, whose
// bytes above 127 are Latin-1.
func (d *Decoder) rawUnicode(line []byte) (Value, error) {
	out, err := unescape(string(line), true)
	if err != nil {
		return Value{}, d.bad("UNICODE: %v", err)
	}
	return d.str(out)
}

// unescape replaces Python's backslash escapes by the characters that they stand for. In raw mode only \u and \U are
// escapes.
func unescape(s string, raw bool) ([]byte, error) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			if raw && c >= utf8.RuneSelf {
				out = utf8.AppendRune(out, rune(c))
			} else {
				out = append(out, c)
			}
			continue
		}
		digits := map[byte]int{'u': 4, 'U': 8}[s[i+1]]
		if !raw && s[i+1] == 'x' {
			digits = 2
		}
		switch {
		case digits > 0 && (raw || digits == 2):
			if i+2+digits > len(s) {
				return nil, fmt.Errorf("broken escape %q", s[i:])
			}
			n, err := strconv.ParseUint(s[i+2:i+2+digits], 16, 32)
			if err != nil {
				return nil, fmt.Errorf("broken escape %q", s[i:i+2+digits])
			}
			if digits == 2 {
				out = append(out, byte(n))
			} else {
				out = utf8.AppendRune(out, rune(n))
			}
			i += 1 + digits
		case raw:
			out = append(out, c)
		case s[i+1] >= '0' && s[i+1] <= '7':
			j, n := i+1, 0
			for j < len(s) && j < i+4 && s[j] >= '0' && s[j] <= '7' {
				n = n*8 + int(s[j]-'0')
				j++
			}
			out = append(out, byte(n))
			i = j - 1
		default:
			i++
			if k := strings.IndexByte("abfnrtv", s[i]); k >= 0 {
				out = append(out, "\a\b\f\n\r\t\v"[k])
			} else if strings.IndexByte(`\'"`, s[i]) >= 0 {
				out = append(out, s[i])
			} else {
				out = append(out, '\\', s[i])
			}
		}
	}
	return out, nil
}

// InternText is [Decoder.Intern] for use during decoding. InternText charges the memory that it adds.
func (d *Decoder) InternText(s string) (uint32, error) {
	if _, ok := d.ids[s]; !ok {
		if err := d.Charge(int64(len(s)) + stringCost); err != nil {
			return 0, err
		}
	}
	return d.Intern(s), nil
}
