package schemas

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// EventColumns leaves out columns that have only zeros. EventColumns still has the same values as full columns, after
// any sequence of adding, setting, cutting and joining.
func TestEventColumns(t *testing.T) {
	type values struct {
		stream, pool uint64
		line         uint32
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		var e EventColumns
		var want []values
		some := func() uint64 { // mostly 0, so that columns stay empty for a while
			if r.IntN(20) > 0 {
				return 0
			}
			return r.Uint64N(3)
		}
		for range r.IntN(40) {
			switch n := len(want); r.IntN(5) {
			case 0, 1:
				v := values{stream: some(), pool: some()}
				e.Append(ActionAlloc, uint64(n), 1, v.stream, 2, 3, 4, v.pool)
				want = append(want, v)
			case 2:
				if n > 0 {
					i, v := r.IntN(n), values{some(), some(), uint32(some())}
					e.SetStream(i, v.stream)
					e.SetPool(i, v.pool)
					e.SetLine(i, v.line)
					want[i] = v
				}
			case 3:
				from := r.IntN(n + 1)
				to := from + r.IntN(n-from+1)
				part := e.Part(from, to)
				// Appending to a part of the columns does not change the whole.
				more := e.Part(from, to)
				more.Append(ActionAlloc, 1, 1, 9, 1, 1, 1, 9)
				more.SetLine(more.Len()-1, 9)
				e.AppendAll(&part)
				want = append(want, slices.Clone(want[from:to])...)
			case 4:
				to := r.IntN(n + 1)
				e, want = e.Part(0, to), want[:to:to]
			}
			var got []values
			for i := range e.Len() {
				got = append(got, values{e.StreamOf(i), e.PoolOf(i), e.LineOf(i)})
			}
			if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %v, want %v", seed, got, want)
			}
			for _, n := range []int{len(e.Stream), len(e.Pool), len(e.Line)} {
				if n != 0 && n != e.Len() || len(e.Addr) != e.Len() || len(e.Stack) != e.Len() {
					t.Fatalf("seed %d: a column of %d of %d events", seed, n, e.Len())
				}
			}
		}
	}
	var none EventColumns
	none.Append(ActionAlloc, 1, 1, 0, 1, 1, 1, 0)
	none.SetStream(0, 0)
	if none.Stream != nil || none.Pool != nil || none.Line != nil {
		t.Error("columns of zeros take memory")
	}
}
