package canvas

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"image"
	"io"

	"github.com/klauspost/compress/zlib"
)

// pngLevel is where more effort hardly makes a figure smaller: the highest level saves a seventh in nine times the time.
const pngLevel = 5

// encodePNG writes an opaque picture as PNG of 24 bits a pixel, its rows as they are. image/png tries five filters on every
// row, for longer than drawing takes; they are for photographs, and leave flat colours and repeated letters larger.
func encodePNG(w io.Writer, img *image.RGBA) error {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	if _, err := io.WriteString(w, "\x89PNG\r\n\x1a\n"); err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	header = append(header, 8, 2, 0, 0, 0) // bits a channel, RGB, deflate, adaptive filters, not interlaced
	if err := writeChunk(w, "IHDR", header); err != nil {
		return err
	}
	data := bufio.NewWriterSize(chunks{w}, 64<<10)
	z, err := zlib.NewWriterLevel(data, pngLevel)
	if err != nil {
		return err
	}
	line := make([]byte, 1+3*width) // its first byte: no filter
	for y := range height {
		row := img.Pix[y*img.Stride:][:4*width]
		for x, k := 0, 1; x < len(row); x, k = x+4, k+3 {
			line[k], line[k+1], line[k+2] = row[x], row[x+1], row[x+2]
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

// chunks makes a chunk of compressed pixels of each write.
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
