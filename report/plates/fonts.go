package plates

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// slack is the factor by which layout enlarges the widths of this package's font, since a document's font may be a few
// per cent wider, as Computer Modern is.
const slack = 1.06

// Heights of a line of text above and below its baseline, in multiples of its size.
const (
	ascent  = 0.74
	descent = 0.22
	capital = 0.72 // height of a capital letter and of a digit
)

// A face is a font with the widths of the characters used so far.
type face struct {
	font   *sfnt.Font
	mu     sync.Mutex
	buffer sfnt.Buffer
	widths map[rune]float64 // in multiples of the size; negative if the font lacks the character
}

func parsed(ttf []byte) func() *face {
	return sync.OnceValue(func() *face {
		f, err := sfnt.Parse(ttf)
		if err != nil {
			panic("the built-in font: " + err.Error())
		}
		return &face{font: f, widths: map[rune]float64{}}
	})
}

var (
	regular = parsed(liberationsansregular.TTF)
	bold    = parsed(liberationsansbold.TTF)
)

// eastAsian returns a system font for characters that the built-in font lacks, or nil if none is found.
var eastAsian = sync.OnceValue(func() *face {
	for _, pattern := range []string{
		"/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
		"/usr/share/fonts/*/NotoSansCJK-Regular.ttc",
		"/usr/share/fonts/truetype/wqy/*.ttc",
		"/usr/share/fonts/truetype/droid/DroidSansFallback*.ttf",
		"/System/Library/Fonts/PingFang.ttc",
		"/System/Library/Fonts/STHeiti Light.ttc",
		`C:\Windows\Fonts\msyh.ttc`,
		`C:\Windows\Fonts\simsun.ttc`,
	} {
		files, _ := filepath.Glob(pattern) // Glob cannot fail, since the patterns are valid
		for _, name := range files {
			data, err := os.Open(name) // the file stays open, since glyphs are read when they are drawn
			if err != nil {
				continue
			}
			all, err := sfnt.ParseCollectionReaderAt(data)
			if err != nil {
				continue
			}
			if f, err := all.Font(0); err == nil {
				return &face{font: f, widths: map[rune]float64{}}
			}
		}
	}
	return nil
})

// width returns a character's advance in multiples of the size.
func (f *face) width(r rune) (float64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, known := f.widths[r]
	if !known {
		w = -1
		if g, err := f.font.GlyphIndex(&f.buffer, r); err == nil && g != 0 {
			const em = 1 << 10
			if a, err := f.font.GlyphAdvance(&f.buffer, g, fixed.I(em), font.HintingNone); err == nil {
				w = float64(a) / 64 / em
			}
		}
		f.widths[r] = w
	}
	return w, w >= 0
}

// outline returns a character's outline around its origin in a font of size points, y downward.
func (f *face) outline(r rune, size float64) sfnt.Segments {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, err := f.font.GlyphIndex(&f.buffer, r)
	if err != nil {
		return nil
	}
	s, err := f.font.LoadGlyph(&f.buffer, g, fixed.Int26_6(size*64), nil)
	if err != nil {
		return nil
	}
	return append(sfnt.Segments(nil), s...)
}

func faceOf(heavy bool) *face {
	if heavy {
		return bold()
	}
	return regular()
}

// A run is a piece of text drawn with one font. Without a font its characters are drawn as boxes.
type run struct {
	text  string
	face  *face
	own   bool // whether the font is the built-in one
	width float64
}

// runs divides a text into runs of characters that one font has.
func runs(s string, size float64, heavy bool) (out []run) {
	for _, r := range s {
		f, own := faceOf(heavy), true
		w, ok := f.width(r)
		if !ok {
			f, own, w = eastAsian(), false, 1
			if f != nil {
				if _, ok = f.width(r); !ok {
					f = nil
				}
			}
		}
		if n := len(out); n > 0 && out[n-1].face == f {
			out[n-1].text += string(r)
			out[n-1].width += w * size
		} else {
			out = append(out, run{string(r), f, own, w * size})
		}
	}
	return out
}

// measure returns a text's width in points.
func measure(s string, size float64, heavy bool) float64 {
	w := 0.0
	for _, r := range runs(s, size, heavy) {
		w += r.width
	}
	return w
}

// Lacks reports whether no available font has some character of a label. PDF and PNG then show a box.
func Lacks(label string) bool {
	for _, r := range runs(label, 1, false) {
		if r.face == nil {
			return true
		}
	}
	return false
}

// clean returns a label as one line of printable characters, with spaces for underscores.
func clean(label string) string {
	return strings.Join(strings.FieldsFunc(label, func(r rune) bool {
		return r == '_' || r <= ' ' || r == 0x7f
	}), " ")
}

// longest is the number of characters of a label that are shown, and narrowest the length from which on a label is
// wrapped. A Chinese character counts as two.
const (
	longest = 24
	wrapAt  = 18
)

func count(r rune) int {
	if r >= 0x1100 {
		return 2
	}
	return 1
}

func length(s string) (n int) {
	for _, r := range s {
		n += count(r)
	}
	return n
}

// Short returns a label as figures show it. A label longer than 24 characters is shortened in its middle.
func Short(label string) string {
	s := clean(label)
	if length(s) <= longest {
		return s
	}
	all := []rune(s)
	head, tail, n := 0, len(all), 1
	for n < longest {
		if head <= len(all)-tail {
			n += count(all[head])
			head++
		} else {
			tail--
			n += count(all[tail])
		}
	}
	return strings.TrimRight(string(all[:head]), " -") + "…" + strings.TrimLeft(string(all[tail:]), " -")
}

// wrapped returns a label in one line, or in two lines if it is longer than 18 characters. wrapped breaks a label at
// the space, hyphen or ellipsis nearest to the middle if one is near it, or else in the middle.
func wrapped(label string) []string {
	s := Short(label)
	if length(s) <= wrapAt {
		return []string{s}
	}
	all := []rune(s)
	best, half := 0, length(s)/2
	at, distance := 0, 1<<30
	for i, r := range all {
		at += count(r)
		if d := max(at-half, half-at); (r == ' ' || r == '-' || r == '…') && i+1 < len(all) && d < distance && d < half/2 {
			best, distance = i+1, d
		}
	}
	if best == 0 {
		for at = 0; at < half; best++ {
			at += count(all[best])
		}
	}
	return []string{strings.TrimRight(string(all[:best]), " "), string(all[best:])}
}
