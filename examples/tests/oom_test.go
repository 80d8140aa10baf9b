package examples_test

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Two scripts ran out of memory on a real GPU: the error ended one run, and the script of the other run caught it and
// continued. The recordings of both runs have the failed request, the module and phase that made it, and a breakdown of
// that moment in which every byte has an owner.
func TestOutOfMemory(t *testing.T) {
	want := map[string]struct {
		status string
		fatal  bool
		steps  int
	}{"die": {schemas.StatusOOM, true, 2}, "recover": {schemas.StatusOK, false, 4}}
	for e := range runsOf(t, "oom") {
		w, ok := want[e.Manifest.Name]
		delete(want, e.Manifest.Name)
		if !ok || e.Manifest.Source != schemas.Measured || e.Manifest.Status != w.status || len(e.in.Report.OOMs) != 1 {
			t.Fatalf("%s: %s, %s, out-of-memory errors: %+v", e.Manifest.Name, e.Manifest.Source, e.Manifest.Status,
				e.in.Report.OOMs)
		}
		if n := len(e.in.Steps); n != w.steps {
			t.Errorf("%s: %d steps, want %d", e.Manifest.Name, n, w.steps)
		}
		o := e.in.Report.OOMs[0]
		if o.Fatal != w.fatal || o.Step != 2 || o.Phase != "forward" || o.Module != "head" ||
			o.RequestedBytes < 40<<30 {
			t.Errorf("%s: %+v", e.Manifest.Name, o)
		}
		doc, err := memory.Breakdown(e.in, memory.At{OOM: new(int64(1))})
		if err != nil {
			t.Fatal(err)
		}
		d := doc.Devices[0]
		var sum, bank int64
		for _, c := range d.Categories {
			if sum += c.Bytes; c.Category == schemas.Buffers {
				bank = c.Bytes
			}
		}
		if sum != d.AllocatedBytes || bank < 100<<30 {
			t.Errorf("%s: categories come to %d of %d bytes, %d of them buffers", e.Manifest.Name, sum,
				d.AllocatedBytes, bank)
		}
		// The held and the requested bytes together exceed the limit, so the request would fail even if torch freed
		// all its cached blocks.
		if held := d.AllocatedBytes + o.RequestedBytes; held <= o.LimitBytes {
			t.Errorf("%s: %d bytes held and asked for, and %d are allowed", e.Manifest.Name, held, o.LimitBytes)
		}
		limitsOf("oom").hold(t, e.Manifest.Name, &d)
	}
	if len(want) > 0 {
		t.Errorf("not recorded: %v", want)
	}
}
