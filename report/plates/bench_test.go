package plates

import (
	"bytes"
	"testing"
)

func BenchmarkFormats(b *testing.B) {
	d, err := Breakdown{Bars: headline(), Baseline: "Non-private"}.Draw(Column)
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range formats(d) {
		b.Run(f.name, func(b *testing.B) {
			for range b.N {
				out.Reset()
				if err := f.write(&out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
