package units

import "testing"

func TestMiB(t *testing.T) {
	for n, want := range map[int64]string{0: "0.00 MiB", 1: "<0.01 MiB", 5242: "<0.01 MiB", 5243: "0.01 MiB",
		1 << 20: "1.00 MiB", 28289<<20 + 335544: "28,289.32 MiB", 1234567 << 20: "1,234,567.00 MiB", -1: ">−0.01 MiB",
		-(1500 << 20): "−1,500.00 MiB"} {
		if got := MiB(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestFixed(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   string
	}{{0, 0, "0"}, {-0.001, 2, "0.00"}, {999.5, 1, "999.5"}, {1000, 0, "1,000"}, {-123456, 1, "−123,456.0"},
		{-123, 0, "−123"}} {
		if got := Fixed(c.x, c.digits); got != c.want {
			t.Errorf("%v with %d: %q, want %q", c.x, c.digits, got, c.want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 steps", 1: "1 step", 3: "3 steps"} {
		if got := Plural(n, "step", "steps"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
