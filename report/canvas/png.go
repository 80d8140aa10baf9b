package canvas

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"image"
	"io"
	"math"

	"github.com/klauspost/compress/zlib"
)

// pngLevel is the compression level above which a figure's file hardly shrinks: the highest level saves a seventh in
// nine times the time.
const pngLevel = 5

// WritePNG writes an opaque picture as PNG with one byte a pixel, in unfiltered rows, and with at most [mostColours]
// colours. image/png tries five filters on every row, which takes longer than drawing. PNG's filters are made for
// photographs, and make files of flat colours and repeated letters larger. The file states the resolution in dots per
// inch unless dots is 0.
func WritePNG(w io.Writer, img *image.RGBA, dots float64) error {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	if _, err := io.WriteString(w, "\x89PNG\r\n\x1a\n"); err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	header = append(header, 8, 3, 0, 0, 0) // 8 bits a pixel, palette, deflate, adaptive filters, not interlaced
	if err := writeChunk(w, "IHDR", header); err != nil {
		return err
	}
	if dots > 0 {
		const inches = 0.0254 // an inch in metres
		each := uint32(math.Round(dots / inches))
		size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, each), each)
		if err := writeChunk(w, "pHYs", append(size, 1)); err != nil { // the last byte gives the unit: per metre
			return err
		}
	}
	colours, index := palette(img)
	table := make([]byte, 0, 3*len(colours))
	for _, c := range colours {
		table = append(table, byte(c>>16), byte(c>>8), byte(c))
	}
	if err := writeChunk(w, "PLTE", table); err != nil {
		return err
	}
	data := bufio.NewWriterSize(chunks{w}, 64<<10)
	z, err := zlib.NewWriterLevel(data, pngLevel)
	if err != nil {
		return err
	}
	line := make([]byte, 1+width) // the first byte of a line is 0: no filter
	last, at := colours[0], byte(0)
	for y := range height {
		row := img.Pix[y*img.Stride:][:4*width]
		for x := range width {
			if c := pixel(row[4*x:]); c != last {
				last, at = c, index[c]
			}
			line[1+x] = at
		}
		if _, err := z.Write(line); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := data.Flush(); err != nil {
		return err
	}
	return writeChunk(w, "IEND", nil)
}

// chunks writes each write to it as a chunk of compressed pixels.
type chunks struct{ w io.Writer }

func (c chunks) Write(b []byte) (int, error) { return len(b), writeChunk(c.w, "IDAT", b) }

func writeChunk(w io.Writer, kind string, data []byte) error {
	head := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), kind...)
	sum := crc32.Update(crc32.ChecksumIEEE(head[4:]), crc32.IEEETable, data)
	for _, part := range [][]byte{head, data, binary.BigEndian.AppendUint32(nil, sum)} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
