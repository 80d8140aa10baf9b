package plates

// A Style is where a figure is printed.
type Style struct {
	Width  float64 // in points of 1/72 inch: the figure is as wide as this, exactly
	Height float64 // the greatest height, if the place limits it, as a slide does; else 0
	Label  float64 // size of names and of numbers along axes, in points
	Value  float64 // size of values, in points
	Dark   bool    // a dark page
	Wide   bool    // the place has room for four panels in a row; else for two
}

// The places that have a width of their own.
var (
	Column  = Style{Width: Centimetres(8.5), Label: 7, Value: 6.5}
	IEEE    = Style{Width: Centimetres(8.8), Label: 7, Value: 6.5}
	NeurIPS = Style{Width: Centimetres(13.97), Label: 7, Value: 6.5}
	Page    = Style{Width: Centimetres(17.6), Label: 7, Value: 6.5, Wide: true}
	Slide   = Style{Width: Centimetres(14.6), Height: Centimetres(7.15), Label: 11, Value: 10}
)

// Centimetres is a length in points.
func Centimetres(cm float64) float64 { return cm * 72 / 2.54 }

// OnDark is the same place on a dark page.
func (s Style) OnDark() Style {
	s.Dark = true
	return s
}

// slide reports whether the style has a height to keep.
func (s Style) slide() bool { return s.Height > 0 }

// panels is the most panels side by side.
func (s Style) panels() int {
	if s.Wide {
		return 4
	}
	return 2
}

// line is the height of a line of labels.
func (s Style) line() float64 { return 1.16 * s.Label }
