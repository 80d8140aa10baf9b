package plates

// A Style describes the place where a figure is printed.
type Style struct {
	Width  float64 // the figure's exact width, in points of 1/72 inch
	Height float64 // the greatest height, if the place limits it like a slide; else 0
	Label  float64 // size of names and of numbers along axes, in points
	Value  float64 // size of values, in points
	Dark   bool    // whether the page is dark
	Wide   bool    // whether four panels have room in a row, and not only two
}

// The styles of common places.
var (
	Column  = Style{Width: Centimetres(8.5), Label: 7, Value: 6.5}
	IEEE    = Style{Width: Centimetres(8.8), Label: 7, Value: 6.5}
	NeurIPS = Style{Width: Centimetres(13.97), Label: 7, Value: 6.5}
	Page    = Style{Width: Centimetres(17.6), Label: 7, Value: 6.5, Wide: true}
	Slide   = Style{Width: Centimetres(14.6), Height: Centimetres(7.15), Label: 11, Value: 10}
)

// Centimetres converts centimetres to points.
func Centimetres(cm float64) float64 { return cm * 72 / 2.54 }

// OnDark returns the style for a dark page.
func (s Style) OnDark() Style {
	s.Dark = true
	return s
}

// slide reports whether the style limits the height.
func (s Style) slide() bool { return s.Height > 0 }

// panels returns the most panels side by side.
func (s Style) panels() int {
	if s.Wide {
		return 4
	}
	return 2
}

// line returns the height of a line of labels.
func (s Style) line() float64 { return 1.16 * s.Label }
