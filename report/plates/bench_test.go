package plates

import (
	"bytes"
	"runtime"
	"testing"
)

// ofPaper lists the figures of one paper, with recorded values. ofPaper has one figure of each kind.
var ofPaper = []string{"breakdown", "waterfall", "step", "time", "tradeoff", "lines", "heatmap", "ladder", "largest",
	"trend", "accuracy"}

// BenchmarkAllKinds writes all kinds of figures in three formats. On one core, this may take two seconds and 300 MB.
func BenchmarkAllKinds(b *testing.B) {
	all := figures()
	var out bytes.Buffer
	for b.Loop() {
		for _, name := range ofPaper {
			d, err := all[name].Draw(Column)
			if err != nil {
				b.Fatal(err)
			}
			for _, f := range formats(d) {
				out.Reset()
				if err := f.write(&out); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/1e6, "MB-from-OS")
}

func BenchmarkFormats(b *testing.B) {
	d, err := figures()["breakdown"].Draw(Column)
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range formats(d) {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				out.Reset()
				if err := f.write(&out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
