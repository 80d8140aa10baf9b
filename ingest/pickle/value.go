package pickle

import "math"

// A Kind is the type of a [Value].
type Kind uint8

// The kinds of values.
const (
	None   Kind = iota + 1
	Bool        // [Value.Bool]
	Int         // a number that fits an int64: [Value.Int]
	Uint        // a number from 2^63 up to 2^64−1: [Value.Uint]
	BigInt      // a number beyond 64 bits; its decimal text is interned: [Value.ID]
	Float       // [Value.Float]
	String      // [Value.ID]
	Bytes       // bytes or bytearray: [Value.ID]
	List        // [Value.Ref]
	Dict        // [Value.Ref]
	Tuple       // [Value.Ref]
)

var kindNames = [...]string{"nothing", "None", "bool", "int", "int", "int", "float", "str", "bytes", "list", "dict",
	"tuple"}

// String returns Python's name for the type.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// A Ref stands for a container. A [Builder] returns it, with a tag (not 0) and a number that only the builder
// interprets. The zero Ref is a container that is still empty.
type Ref struct {
	Tag uint8
	ID  uint64
}

// A Value is one Python value. A Value has 16 bytes and no pointers, so that the garbage collector need not scan stacks
// and memos of millions of values.
type Value struct {
	n     uint64
	slot  uint32 // memo slot of a list or dictionary, plus 1; 0 = none
	depth uint8  // how deep containers lie inside it; 0 for plain values
	flags uint8
	kind  Kind
	tag   uint8
}

// fetched marks a memo slot whose container has been copied to the stack, so that it can no longer grow.
const fetched = 1

// Kind returns the type of v; the zero Value has kind 0.
func (v Value) Kind() Kind { return v.kind }

// IsInt reports whether v is an integer of at most 64 bits.
func (v Value) IsInt() bool { return v.kind == Int || v.kind == Uint }

// Bool returns the value of a [Bool].
func (v Value) Bool() bool { return v.n != 0 }

// Int returns the value of an [Int]. A [Uint] wraps around, so 2^64−1 returns −1.
func (v Value) Int() int64 { return int64(v.n) }

// Uint returns the value of an [Int] or a [Uint]. A negative Int wraps around.
func (v Value) Uint() uint64 { return v.n }

// Float returns the value of a [Float].
func (v Value) Float() float64 { return math.Float64frombits(v.n) }

// ID returns the id of an interned string, bytes object or big integer; see [Decoder.Text]. Equal texts have equal ids.
func (v Value) ID() uint32 { return uint32(v.n) }

// Ref returns the Ref that the builder returned for a container, or the zero Ref if the container is empty.
func (v Value) Ref() Ref { return Ref{Tag: v.tag, ID: v.n} }

func intValue(n int64) Value     { return Value{kind: Int, n: uint64(n)} }
func floatValue(f float64) Value { return Value{kind: Float, n: math.Float64bits(f)} }

func boolValue(b bool) Value {
	if b {
		return Value{kind: Bool, n: 1}
	}
	return Value{kind: Bool}
}

func uintValue(n uint64) Value {
	if n > math.MaxInt64 {
		return Value{kind: Uint, n: n}
	}
	return Value{kind: Int, n: n}
}
