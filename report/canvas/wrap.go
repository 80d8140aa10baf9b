package canvas

import "strings"

// Ellipsis ends a text that was shortened.
const Ellipsis = "…"

// Fit shortens s to a width.
func Fit(s string, size, width float64) string {
	if Measure(s, size) <= width {
		return s
	}
	runes := []rune(s)
	for n := len(runes) - 1; n > 0; n-- {
		if cut := strings.TrimRight(string(runes[:n]), " ") + Ellipsis; Measure(cut, size) <= width {
			return cut
		}
	}
	return Ellipsis
}

// Wrap breaks s into lines of at most the width, and into at most the given number of lines (0 = any number). Wrap
// breaks at spaces and after hyphens, underscores, slashes, commas and full stops, but not inside a number such as
// 2.11.0 or 1,024. Wrap breaks a longer word anywhere, and cuts off text that does not fit.
func Wrap(s string, size, width float64, lines int) []string {
	var out []string
	rest := strings.TrimSpace(s)
	for rest != "" {
		if Measure(rest, size) <= width {
			return append(out, rest)
		}
		if lines > 0 && len(out) == lines-1 {
			return append(out, Fit(rest, size, width))
		}
		end, breakAt := 0, 0
		for i, r := range rest {
			next := i + len(string(r))
			if end > 0 && Measure(rest[:next], size) > width {
				break
			}
			end = next
			if strings.ContainsRune(" -_/,.", r) && !(strings.ContainsRune(",.", r) && i > 0 && digit(rest[i-1]) &&
				next < len(rest) && digit(rest[next])) {
				breakAt = next
			}
		}
		if breakAt > 0 {
			end = breakAt
		}
		out = append(out, strings.TrimRight(rest[:end], " "))
		rest = strings.TrimLeft(rest[end:], " ")
	}
	return out
}

func digit(b byte) bool { return b >= '0' && b <= '9' }
