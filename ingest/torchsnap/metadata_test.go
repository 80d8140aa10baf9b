package torchsnap

import "testing"

func TestMarkAndLine(t *testing.T) {
	for text, want := range map[string]struct {
		mark, line uint32
		ok         bool
	}{
		"12":            {12, 0, true},
		"12@7":          {12, 7, true},
		"0@7":           {0, 7, true},
		"4294967295@1":  {4294967295, 1, true},
		"12@":           {},
		"@7":            {},
		"12@7@8":        {},
		"a@7":           {},
		"12@4294967296": {},
		"":              {},
	} {
		mark, line, ok := markAndLine(text)
		if mark != want.mark || line != want.line || ok != want.ok {
			t.Errorf("%q: %d, %d, %v", text, mark, line, ok)
		}
	}
}
