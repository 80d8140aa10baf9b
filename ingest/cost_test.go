package ingest

import "testing"

// Steps of different batches are compared by their time a sample: here each takes 1 ms a sample bare, and 1.2 ms
// instrumented.
func TestInstrumentOfVaryingBatches(t *testing.T) {
	ms := func(v ...int64) (ns []int64) {
		for _, n := range v {
			ns = append(ns, n*1e6)
		}
		return ns
	}
	times := [2][]int64{ms(30, 50, 40), ms(12, 36, 24)}
	if got := instrumentOf(times, [2][]int64{{30, 50, 40}, {10, 30, 20}}); got == nil || *got != 8e6 {
		t.Errorf("%v", got)
	}
	for what, samples := range map[string][2][]int64{"of one size": {{8, 8, 8}, {8, 8, 8}},
		"not reported": {{30, 50, 40}, {10, 0, 20}}} {
		if got := instrumentOf(times, samples); got != nil {
			t.Errorf("%s: %d ns", what, *got)
		}
	}
	if got := instrumentOf([2][]int64{nil, times[1]}, [2][]int64{nil, {1, 2, 3}}); got != nil {
		t.Errorf("without bare steps: %d ns", *got)
	}
}
