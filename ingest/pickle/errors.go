package pickle

import (
	"fmt"
	"io"
)

// A RefusedError names an opcode that plain data does not need and that this package does not execute.
type RefusedError struct {
	Opcode string // pickletools' name, such as GLOBAL
	Offset int64  // offset of the opcode, in bytes from the start
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("opcode %s at byte %d %s: refused", e.Opcode, e.Offset, e.Reason)
}

// A SyntaxError says that the input is no pickle, or a broken pickle.
type SyntaxError struct {
	Offset int64 // offset of the opcode, in bytes from the start
	Msg    string
	Err    error // io.ErrUnexpectedEOF if the input ends too early
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("bad pickle at byte %d: %s", e.Offset, e.Msg)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// A LimitError says that the input exceeds one of the [Limits].
type LimitError struct {
	Offset int64
	What   string // the limit that the input exceeds
	Limit  int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("pickle refused at byte %d: %s beyond the limit of %d", e.Offset, e.What, e.Limit)
}

func (d *Decoder) bad(format string, args ...any) error {
	return &SyntaxError{Offset: d.at, Msg: fmt.Sprintf(format, args...)}
}

func (d *Decoder) truncated() error {
	return &SyntaxError{Offset: d.at, Msg: fmt.Sprintf("the input ends at byte %d", d.in.offset()+int64(d.in.left())),
		Err: io.ErrUnexpectedEOF}
}

func (d *Decoder) exceeded(what string, limit int64) error {
	return &LimitError{Offset: d.at, What: what, Limit: limit}
}
