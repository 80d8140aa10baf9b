package pickle

import "encoding/binary"

// uint reads width bytes, little-endian.
func (d *Decoder) uint(width int) (uint64, error) {
	in := &d.in
	if len(in.buf)-in.pos < width {
		if err := in.fill(width); err != nil {
			return 0, d.readError(err)
		}
	}
	b := in.buf[in.pos:]
	in.pos += width
	switch width {
	case 1:
		return uint64(b[0]), nil
	case 2:
		return uint64(binary.LittleEndian.Uint16(b)), nil
	case 4:
		return uint64(binary.LittleEndian.Uint32(b)), nil
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (d *Decoder) take(n uint64) ([]byte, error) {
	if n > uint64(d.limits.StringBytes) {
		return nil, d.exceeded("string length", d.limits.StringBytes)
	}
	b, err := d.in.take(int(n))
	if err != nil {
		return nil, d.readError(err)
	}
	return b, nil
}

func (d *Decoder) line() ([]byte, error) {
	b, tooLong, err := d.in.line(d.limits.StringBytes)
	if err != nil {
		return nil, d.readError(err)
	}
	if tooLong {
		return nil, d.exceeded("line length", d.limits.StringBytes)
	}
	return b, nil
}

func (d *Decoder) readError(err error) error {
	switch err {
	case errShort:
		return d.truncated()
	case errTooLong:
		return d.exceeded("input", d.limits.Input)
	}
	return &SyntaxError{Offset: d.at, Msg: "read: " + err.Error(), Err: err}
}
