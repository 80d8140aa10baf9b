// Package dense encodes values of plain types in a form that can be decoded in about a tenth of the time of JSON.
// Encoded values can be decoded only into the same type, with the same fields in the same order; any other type gives
// an error. So the form is only for an index, which can be rebuilt.
package dense

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Only the struct fields that encoding/json would encode are encoded. Fields that are not exported, fields with the tag
// "-", and interfaces with methods, which cannot be decoded, are left out.

// errCut says that the encoding ends before all values of the type are read.
var errCut = errors.New("the encoding is cut off")

// errLong says that bytes remain after all values of the type are read.
var errLong = errors.New("the encoding has more than its type")

// Marshal encodes what v points to.
func Marshal(v any) ([]byte, error) {
	c := codecOf(reflect.TypeOf(v).Elem())
	return c.put(binary.BigEndian.AppendUint32(nil, c.layout), reflect.ValueOf(v).Elem())
}

// A Reader decodes values that [Marshal] encoded. Equal strings, lists, maps and structs behind pointers share one
// decoded value, so callers must not change decoded values. A Reader serves one goroutine at a time.
type Reader struct {
	words []memo[string]        // decoded strings, by the number of their codec
	keys  memo[string]          // decoded keys of maps and of values of any type
	parts []memo[reflect.Value] // decoded lists, maps and structs, by the number of their codec
	rest  []byte
	err   error
}

// memo maps encodings to the values that were decoded from them before.
type memo[V any] struct {
	had  map[string]V
	hits int
	off  bool
}

const (
	// mostKept is the largest number of values that a memo keeps.
	mostKept = 4096
	// judged is the number of values after which a memo is checked. If fewer of its values than that were found again,
	// the memo is turned off: values that differ from run to run, such as identifiers and times, would only fill it.
	judged = 256
)

func (m *memo[V]) find(b []byte) (V, bool) {
	v, ok := m.had[string(b)]
	if ok {
		m.hits++
	}
	return v, ok
}

func (m *memo[V]) keep(b []byte, v V) {
	switch {
	case m.off || len(m.had) == mostKept:
	case len(m.had) == judged && m.hits < judged:
		m.had, m.off = nil, true
	default:
		if m.had == nil {
			m.had = map[string]V{}
		}
		m.had[string(b)] = v
	}
}

// memoAt returns the memo for a codec's number, and makes it at first use.
func memoAt[V any](all *[]memo[V], i int) *memo[V] {
	for len(*all) <= i {
		*all = append(*all, memo[V]{})
	}
	return &(*all)[i]
}

// Unmarshal decodes into what v points to, which has its zero value.
func (r *Reader) Unmarshal(b []byte, v any) error {
	c := codecOf(reflect.TypeOf(v).Elem())
	if len(b) < 4 || binary.BigEndian.Uint32(b) != c.layout {
		return fmt.Errorf("the encoding is of another type than %T", v)
	}
	r.rest, r.err = b[4:], nil
	c.get(r, reflect.ValueOf(v).Elem())
	if r.err == nil && len(r.rest) > 0 {
		r.err = errLong
	}
	return r.err
}

// take returns the next n bytes of the encoding.
func (r *Reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.err, r.rest = errCut, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *Reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.err, r.rest = errCut, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// length returns how many elements follow. is is false for a nil list or map, as opposed to an empty one.
func (r *Reader) length() (n int, is bool) {
	one := r.number()
	if one == 0 {
		return 0, false
	}
	if one-1 > uint64(len(r.rest)) { // each element takes at least one byte
		r.err, r.rest = errCut, nil
		return 0, false
	}
	return int(one - 1), true
}

func putLength(b []byte, n int, is bool) []byte {
	if !is {
		return binary.AppendUvarint(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

func (r *Reader) float() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *Reader) flag() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

func (r *Reader) word(had *memo[string]) string {
	b := r.take(r.number())
	s, ok := had.find(b)
	if !ok {
		s = string(b)
		had.keep(b, s)
	}
	return s
}

// key reads a string that is likely to have occurred before.
func (r *Reader) key() string { return r.word(&r.keys) }

func putWord(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

func putFlag(b []byte, set bool) []byte {
	if set {
		return append(b, 1)
	}
	return append(b, 0)
}

func putFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

// codec encodes and decodes values of one type.
type codec struct {
	layout uint32 // a checksum of the type's form
	put    func([]byte, reflect.Value) ([]byte, error)
	get    func(*Reader, reflect.Value)
}

var codecs sync.Map // a *codec for each type

func codecOf(t reflect.Type) *codec {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec)
	}
	c, form := newCodec(t)
	c.layout = crc32.ChecksumIEEE([]byte(form))
	codecs.Store(t, c)
	return c
}

// parts and words number the codecs for parts and for words.
var parts, words atomic.Int64

// shared returns a codec that writes a value's length before the value. So a repeated value is recognised by its
// encoding and decoded once.
func shared(c *codec) *codec {
	part := int(parts.Add(1) - 1)
	return &codec{
		put: func(b []byte, v reflect.Value) ([]byte, error) {
			at := len(b)
			b, err := c.put(append(b, 0, 0, 0, 0), v)
			if err == nil {
				binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
			}
			return b, err
		},
		get: func(r *Reader, v reflect.Value) {
			head := r.take(4)
			if head == nil {
				return
			}
			b := r.take(uint64(binary.BigEndian.Uint32(head)))
			if b == nil {
				return
			}
			if had, ok := memoAt(&r.parts, part).find(b); ok {
				v.Set(had)
				return
			}
			after := r.rest
			r.rest = b
			c.get(r, v)
			if r.err == nil && len(r.rest) > 0 {
				r.err = errLong
			}
			if r.rest = after; r.err != nil {
				r.rest = nil
				return
			}
			if had := &r.parts[part]; !had.off {
				had.keep(b, reflect.ValueOf(v.Interface()))
			}
		}}
}

var timeType = reflect.TypeFor[time.Time]()

// newCodec makes the codec of a type, and describes its form.
func newCodec(t reflect.Type) (c *codec, form string) {
	form = t.Kind().String()
	switch {
	case t == timeType:
		return timeCodec, t.String()
	case t == reflect.TypeFor[any]():
		return anyCodec, "any"
	}
	switch t.Kind() {
	case reflect.Bool:
		return &codec{
			put: func(b []byte, v reflect.Value) ([]byte, error) { return putFlag(b, v.Bool()), nil },
			get: func(r *Reader, v reflect.Value) { v.SetBool(r.flag()) }}, form
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &codec{
			put: func(b []byte, v reflect.Value) ([]byte, error) { return binary.AppendVarint(b, v.Int()), nil },
			get: func(r *Reader, v reflect.Value) {
				n := r.number()
				v.SetInt(int64(n>>1) ^ -int64(n&1))
			}}, form
	case reflect.Float64:
		return &codec{
			put: func(b []byte, v reflect.Value) ([]byte, error) { return putFloat(b, v.Float()), nil },
			get: func(r *Reader, v reflect.Value) { v.SetFloat(r.float()) }}, form
	case reflect.String:
		word := int(words.Add(1) - 1)
		return &codec{
			put: func(b []byte, v reflect.Value) ([]byte, error) { return putWord(b, v.String()), nil },
			get: func(r *Reader, v reflect.Value) { v.SetString(r.word(memoAt(&r.words, word))) }}, form
	case reflect.Pointer:
		of, its := newCodec(t.Elem())
		if c := pointerCodec(of, t.Elem()); t.Elem().Kind() != reflect.Struct {
			return c, form + its
		} else {
			return shared(c), "shared " + form + its
		}
	case reflect.Slice:
		of, its := newCodec(t.Elem())
		return shared(sliceCodec(of)), "shared " + form + its
	case reflect.Map:
		if t == reflect.TypeFor[map[string]any]() {
			return shared(fieldsCodec), "shared " + form
		}
		if t.Key().Kind() == reflect.String {
			of, its := newCodec(t.Elem())
			return shared(mapCodec(of, t)), "shared " + form + its
		}
	case reflect.Struct:
		return structCodec(t)
	}
	err := fmt.Errorf("a %s cannot be encoded", t)
	return &codec{
		put: func(b []byte, _ reflect.Value) ([]byte, error) { return b, err },
		get: func(r *Reader, _ reflect.Value) { r.err = err }}, form
}

func pointerCodec(of *codec, t reflect.Type) *codec {
	return &codec{
		put: func(b []byte, v reflect.Value) ([]byte, error) {
			if b = putFlag(b, !v.IsNil()); v.IsNil() {
				return b, nil
			}
			return of.put(b, v.Elem())
		},
		get: func(r *Reader, v reflect.Value) {
			if r.flag() {
				v.Set(reflect.New(t))
				of.get(r, v.Elem())
			}
		}}
}

func sliceCodec(of *codec) *codec {
	return &codec{
		put: func(b []byte, v reflect.Value) (_ []byte, err error) {
			b = putLength(b, v.Len(), !v.IsNil())
			for i := 0; i < v.Len() && err == nil; i++ {
				b, err = of.put(b, v.Index(i))
			}
			return b, err
		},
		get: func(r *Reader, v reflect.Value) {
			n, is := r.length()
			if !is {
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				of.get(r, v.Index(i))
			}
		}}
}

func mapCodec(of *codec, t reflect.Type) *codec {
	return &codec{
		put: func(b []byte, v reflect.Value) (_ []byte, err error) {
			b = putLength(b, v.Len(), !v.IsNil())
			for k, e := range v.Seq2() {
				if b, err = of.put(putWord(b, k.String()), e); err != nil {
					return b, err
				}
			}
			return b, nil
		},
		get: func(r *Reader, v reflect.Value) {
			n, is := r.length()
			if !is {
				return
			}
			v.Set(reflect.MakeMapWithSize(t, n))
			for range n {
				k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				k.SetString(r.key())
				of.get(r, e)
				v.SetMapIndex(k, e)
			}
		}}
}

func structCodec(t reflect.Type) (*codec, string) {
	form := "{"
	var at []int
	var of []*codec
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Tag.Get("json") == "-" || f.Type.Kind() == reflect.Interface && f.Type.NumMethod() > 0 {
			continue
		}
		c, its := newCodec(f.Type)
		at, of = append(at, i), append(of, c)
		form += f.Name + " " + its + ";"
	}
	return &codec{
		put: func(b []byte, v reflect.Value) (_ []byte, err error) {
			for k, i := range at {
				if b, err = of[k].put(b, v.Field(i)); err != nil {
					return b, err
				}
			}
			return b, nil
		},
		get: func(r *Reader, v reflect.Value) {
			for k, i := range at {
				of[k].get(r, v.Field(i))
			}
		}}, form + "}"
}

var timeCodec = &codec{
	put: func(b []byte, v reflect.Value) ([]byte, error) {
		text, err := v.Interface().(time.Time).MarshalBinary()
		return putWord(b, string(text)), err
	},
	get: func(r *Reader, v reflect.Value) {
		if b := r.take(r.number()); r.err == nil {
			r.err = v.Addr().Interface().(*time.Time).UnmarshalBinary(b)
		}
	}}

var anyCodec = &codec{
	put: func(b []byte, v reflect.Value) ([]byte, error) { return putAny(b, v.Interface()) },
	get: func(r *Reader, v reflect.Value) { *v.Addr().Interface().(*any) = r.any() }}

var fieldsCodec = &codec{
	put: func(b []byte, v reflect.Value) ([]byte, error) { return putMap(b, v.Interface().(map[string]any)) },
	get: func(r *Reader, v reflect.Value) { *v.Addr().Interface().(*map[string]any) = r.fields() }}

// The kinds of JSON values.
const (
	kindNull = iota
	kindFalse
	kindTrue
	kindNumber
	kindText
	kindList
	kindFields
)

func putAny(b []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case nil:
		return append(b, kindNull), nil
	case bool:
		if v {
			return append(b, kindTrue), nil
		}
		return append(b, kindFalse), nil
	case float64:
		return putFloat(append(b, kindNumber), v), nil
	case string:
		return putWord(append(b, kindText), v), nil
	case []any:
		b = putLength(append(b, kindList), len(v), true)
		for i := 0; i < len(v) && err == nil; i++ {
			b, err = putAny(b, v[i])
		}
		return b, err
	case map[string]any:
		return putMap(append(b, kindFields), v)
	}
	return b, fmt.Errorf("a %T is no value of JSON", v)
}

func (r *Reader) any() any {
	kind := r.take(1)
	if kind == nil {
		return nil
	}
	switch kind[0] {
	case kindNull:
		return nil
	case kindFalse:
		return false
	case kindTrue:
		return true
	case kindNumber:
		return r.float()
	case kindText:
		return r.key()
	case kindList:
		n, _ := r.length()
		list := make([]any, n)
		for i := range list {
			list[i] = r.any()
		}
		return list
	case kindFields:
		return r.fields()
	}
	r.err = fmt.Errorf("the encoding has a value of kind %d", kind[0])
	return nil
}

func putMap(b []byte, m map[string]any) (_ []byte, err error) {
	b = putLength(b, len(m), m != nil)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if b, err = putAny(putWord(b, k), m[k]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (r *Reader) fields() map[string]any {
	n, is := r.length()
	if !is {
		return nil
	}
	m := make(map[string]any, n)
	for range n {
		k := r.key()
		m[k] = r.any()
	}
	return m
}

// Readers decodes for several goroutines at once, with a pool of [Reader]s.
type Readers struct {
	mu   sync.Mutex
	idle []*Reader
}

// Unmarshal calls [Reader.Unmarshal] on a Reader that no other goroutine uses.
func (p *Readers) Unmarshal(b []byte, v any) error {
	r := p.take()
	defer p.give(r)
	return r.Unmarshal(b, v)
}

func (p *Readers) take() *Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return new(Reader)
	}
	r := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return r
}

func (p *Readers) give(r *Reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, r)
}
