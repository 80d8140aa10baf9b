package schemas

import "errors"

// WithHint adds to an error what to do about it, which the command line prints in a line of its own.
func WithHint(err error, hint string) error { return &hintedError{err, hint} }

type hintedError struct {
	error
	hint string
}

func (e *hintedError) Unwrap() error { return e.error }

// Hint is what to do about the error.
func (e *hintedError) Hint() string { return e.hint }

// Hint is the advice of an error that has any.
func Hint(err error) string {
	var with interface{ Hint() string }
	if errors.As(err, &with) {
		return with.Hint()
	}
	return ""
}
