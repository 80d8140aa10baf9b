package canvas

import (
	"cmp"
	"image"
	"maps"
	"slices"
)

// mostColours is the highest number of colours in a picture with one byte a pixel.
const mostColours = 256

// palette returns the colours to use for an opaque picture, and for each of its own colours the index of the colour
// that replaces it. A figure has a few flat colours, and intermediate shades at the edges of letters. If a picture has
// too many colours, the rarest are replaced by their nearest neighbours. The replacement is hardly visible, and makes
// the file half as large. Dividing the colour space into boxes would change flat colours too.
func palette(img *image.RGBA) (colours []uint32, index map[uint32]byte) {
	count := map[uint32]int{}
	for y := range img.Rect.Dy() {
		row := img.Pix[y*img.Stride:][:4*img.Rect.Dx()]
		last, run := uint32(0), 0 // equal pixels follow one another, and looking up a map is slow
		for x := 0; x < len(row); x += 4 {
			c := pixel(row[x:])
			if c != last {
				count[last] += run
				last, run = c, 0
			}
			run++
		}
		count[last] += run
	}
	maps.DeleteFunc(count, func(_ uint32, n int) bool { return n == 0 })
	colours = slices.SortedFunc(maps.Keys(count), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	all := colours
	colours = colours[:min(len(colours), mostColours)]
	index = make(map[uint32]byte, len(all))
	for i, c := range all {
		if i < len(colours) {
			index[c] = byte(i)
		} else {
			index[c] = byte(nearest(colours, c))
		}
	}
	return colours, index
}

func pixel(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func nearest(colours []uint32, c uint32) int {
	best, least := 0, 1<<30
	for i, other := range colours {
		d := 0
		for shift := 0; shift < 24; shift += 8 {
			e := int(c>>shift&0xff) - int(other>>shift&0xff)
			d += e * e
		}
		if d < least {
			best, least = i, d
		}
	}
	return best
}
