package schemas

import "errors"

// WithHint adds advice to an error on what to do about it. The command line prints the advice in a separate line.
func WithHint(err error, hint string) error { return &hintedError{err, hint} }

type hintedError struct {
	error
	hint string
}

func (e *hintedError) Unwrap() error { return e.error }

// Hint returns the advice on what to do about the error.
func (e *hintedError) Hint() string { return e.hint }

// Hint returns the advice that an error carries, or "" if it carries none.
func Hint(err error) string {
	var with interface{ Hint() string }
	if errors.As(err, &with) {
		return with.Hint()
	}
	return ""
}
