package units

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"1MiB": 1 << 20, "0.5 GiB": 1 << 29, "512": 512, "7B": 7, "0": 0,
		"1.5KiB": 1536, "2Gib": 2 << 30, "24 gib": 24 << 30, "1MIB": 1 << 20, "9b": 9} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "1MB", "1mb", "-1", "5%", "99999999TiB", "1e3", "1/2"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}

func TestFormatBytesIsRead(t *testing.T) {
	for n, want := range map[int64]string{0: "0 MiB", 300 << 20: "300 MiB", 24<<30 + 1: "25769803777", 7: "7"} {
		text := FormatBytes(n)
		if got, err := ParseBytes(text); text != want || got != n || err != nil {
			t.Errorf("%d is %q, which is read as %d, %v", n, text, got, err)
		}
	}
}
