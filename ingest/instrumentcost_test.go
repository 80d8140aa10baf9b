package ingest

import "testing"

// To compare bare and instrumented steps of different batch sizes, ingest uses their time per sample. In this test a
// bare step takes 1 ms per sample, and an instrumented step 1.2 ms.
func TestInstrumentOfVaryingBatches(t *testing.T) {
	ms := func(v ...int64) (ns []int64) {
		for _, n := range v {
			ns = append(ns, n*1e6)
		}
		return ns
	}
	bare, instrumented := ms(30, 50, 40), ms(12, 36, 24)
	got := instrumentNS(stepTimes{bare, []int64{30, 50, 40}}, stepTimes{instrumented, []int64{10, 30, 20}})
	if got == nil || *got != 8e6 {
		t.Errorf("%v", got)
	}
	for what, c := range map[string][2]stepTimes{
		"of one size":        {{bare, []int64{8, 8, 8}}, {instrumented, []int64{8, 8, 8}}},
		"not reported":       {{bare, []int64{30, 50, 40}}, {instrumented, []int64{10, 0, 20}}},
		"without bare steps": {{}, {instrumented, []int64{1, 2, 3}}},
	} {
		if got := instrumentNS(c[0], c[1]); got != nil {
			t.Errorf("%s: %d ns", what, *got)
		}
	}
}
