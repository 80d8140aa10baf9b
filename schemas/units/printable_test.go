package units

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, äöü, 日本":               "plain, äöü, 日本",
		"a\x1b[31mred\x1b[0m":          "a�[31mred�[0m",
		"bell\a, line\n, \u009b31m":    "bell�, line�, �31m",
		"\u202egnp.exe, \u2066x\u2069": "�gnp.exe, �x�",
		"\xff":                         "�",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// Text makes a name printable. Two different names that are not UTF-8 stay different, and names that are UTF-8 do not
// change.
func TestText(t *testing.T) {
	for name, want := range map[string]string{"train.py": "train.py", "tr\u00e4in \ufffd": "tr\u00e4in \ufffd",
		"train\xff.py": `train\udcff.py`, "\xe4\xfe": `\udce4\udcfe`} {
		if got := Text(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
