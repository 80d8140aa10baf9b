package figure

import (
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// palette has each category's colour, which is the same in every figure.
var palette = func() map[schemas.Category]canvas.Color {
	colors := map[schemas.Category]canvas.Color{}
	for _, row := range schemas.CategoryTable {
		colors[row.Category] = canvas.Color(row.Color)
	}
	return colors
}()

const (
	minorColor   canvas.Color = 0xece5ee // colour of the small categories together
	unknownColor canvas.Color = 0xffffff // colour of a peak without a breakdown, which is drawn with a frame
	ink          canvas.Color = 0x1a1a1a
	softInk      canvas.Color = 0x5c5c5c
	gridColor    canvas.Color = 0xe2e2e2
	paper        canvas.Color = 0xffffff
)

// inkOn returns the colour of text on a fill.
func inkOn(fill canvas.Color) canvas.Color {
	if fill.Luminance() > 0.3 {
		return ink
	}
	return paper
}

// words returns a category's name with spaces.
func words(c schemas.Category) string { return strings.ReplaceAll(c, "_", " ") }
