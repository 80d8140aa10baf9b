package paper

import (
	"html"
	"slices"
	"strings"
	"unicode"

	"github.com/dpsight/dpsight/schemas/units"
)

// A Text is a sequence of words, code, symbols and references. Each format writes it in its own way.
type Text []span

type span struct {
	kind kind
	text string
	alt  string
}

type kind int

const (
	words   kind = iota
	code         // code, such as `.grad`
	symbol       // a variable, such as *T*
	bold         // bold text: **…**
	cite         // a reference, [@key]; nothing if there is no bibliography
	foreign      // words for which some TeX installations lack fonts; alt replaces them there
)

// marks delimit the kinds of spans in this package's sentences. Names of runs never pass through [parse].
var marks = []struct {
	open, close string
	kind        kind
}{{"**", "**", bold}, {"[@", "]", cite}, {"`", "`", code}, {"*", "*", symbol}}

// parse returns a sentence as a text, according to its marks.
func parse(sentence string) (t Text) {
	for sentence != "" {
		at, which := len(sentence), -1
		for i, m := range marks {
			if k := strings.Index(sentence, m.open); k >= 0 && k < at {
				at, which = k, i
			}
		}
		if at > 0 {
			t = append(t, span{kind: words, text: sentence[:at]})
		}
		if which < 0 {
			break
		}
		m := marks[which]
		inner, rest, _ := strings.Cut(sentence[at+len(m.open):], m.close)
		t = append(t, span{kind: m.kind, text: inner})
		sentence = rest
	}
	return t
}

// plain returns a user's text, in which marks mean nothing.
func plain(s string) Text { return Text{{kind: words, text: units.OneLine(s)}} }

// join appends texts to one another.
func join(texts ...Text) Text { return slices.Concat(texts...) }

// format replaces each {} in a sentence by a text.
func format(sentence string, texts ...Text) (t Text) {
	for _, text := range texts {
		before, after, _ := strings.Cut(sentence, "{}")
		t = append(append(t, parse(before)...), text...)
		sentence = after
	}
	return append(t, parse(sentence)...)
}

// list joins texts: "a", "a and b", "a, b and c".
func list(texts []Text) (t Text) {
	for i, text := range texts {
		switch {
		case i == 0:
		case i == len(texts)-1:
			t = append(t, span{kind: words, text: " and "})
		default:
			t = append(t, span{kind: words, text: ", "})
		}
		t = append(t, text...)
	}
	return t
}

// text returns the words without marks.
func (t Text) text() string {
	var b strings.Builder
	for _, s := range t {
		if s.kind != cite {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// tex returns the text as LaTeX.
func (t Text) tex() string {
	var b strings.Builder
	for _, s := range t {
		switch s.kind {
		case code:
			// LaTeX divides no word of this font: a name in a narrow column may end a line after "_".
			b.WriteString(`\dpsCode{` + strings.ReplaceAll(escape(s.text), `\_`, `\_\allowbreak `) + "}")
		case symbol:
			b.WriteString("$" + s.text + "$")
		case bold:
			b.WriteString(`\textbf{` + escape(s.text) + "}")
		case cite:
			b.WriteString(`~\cite{` + s.text + "}")
		case foreign:
			b.WriteString(`\dpsCJK{` + escape(s.text) + "}{" + escape(s.alt) + "}")
		case words:
			b.WriteString(escape(strings.Map(func(r rune) rune {
				if isCJK(r) {
					return '?'
				}
				return r
			}, s.text)))
		}
	}
	return b.String()
}

// markdown returns the text as Markdown.
func (t Text) markdown() string {
	var b strings.Builder
	for _, s := range t {
		switch s.kind {
		case code:
			b.WriteString("`" + s.text + "`")
		case symbol:
			b.WriteString("*" + s.text + "*")
		case bold:
			b.WriteString("**" + markdownEscaper.Replace(s.text) + "**")
		case words, foreign:
			b.WriteString(markdownEscaper.Replace(s.text))
		case cite:
		}
	}
	return b.String()
}

var markdownEscaper = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "|", `\|`, "[", `\[`,
	"<", "&lt;", "&", "&amp;")

// html returns the text as HTML.
func (t Text) html() string {
	var b strings.Builder
	for _, s := range t {
		text := html.EscapeString(s.text)
		switch s.kind {
		case code:
			b.WriteString("<code>" + text + "</code>")
		case symbol:
			b.WriteString("<i>" + text + "</i>")
		case bold:
			b.WriteString("<b>" + text + "</b>")
		case words, foreign:
			b.WriteString(text)
		case cite:
		}
	}
	return b.String()
}

// texCommands replace characters that LaTeX interprets, or that its fonts lack.
var texCommands = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`,
	'~': `\textasciitilde{}`, '^': `\textasciicircum{}`, '<': `\textless{}`, '>': `\textgreater{}`, '|': `\textbar{}`,
	'"': `\textquotedbl{}`, '`': `\textasciigrave{}`,
	'Δ': `$\Delta$`, 'δ': `$\delta$`, 'ε': `$\varepsilon$`, 'σ': `$\sigma$`, '×': `$\times$`, '≥': `$\geq$`,
	'≤': `$\leq$`, '−': `$-$`, '–': `--`, '—': `---`, '…': `\dots{}`, '\u2009': `\,`, '\u202f': `\,`, '\u00a0': `~`,
	'³': `$^{3}$`, '²': `$^{2}$`, '⁰': `$^{0}$`, '→': `$\rightarrow$`, '·': `$\cdot$`, 'µ': `\textmu{}`, '†': `$\dagger$`,
}

// escape returns LaTeX source that prints s. A character that LaTeX's fonts lack becomes a question mark. Chinese,
// Japanese and Korean characters are kept in labels.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch command, known := texCommands[r]; {
		case known:
			b.WriteString(command)
		case r < 0x20:
			b.WriteByte(' ')
		case r < 0x180 || isCJK(r): // characters in utf8 and T1, and those in \dpsCJK
			b.WriteRune(r)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

func isCJK(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r >= 0x3000 && r < 0x3040 || r >= 0xff00 && r < 0xfff0
}

// hasCJK reports whether a text needs fonts that a TeX installation may lack.
func hasCJK(s string) bool { return strings.ContainsFunc(s, isCJK) }
