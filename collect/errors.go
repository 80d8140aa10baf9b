package collect

import (
	"errors"
	"fmt"
	"io/fs"
)

// A UsageError is a mistake in the request, or a machine that cannot fulfil it. Nothing was run.
type UsageError struct {
	Problem string
	Advice  string // what to do about it, may be empty
}

func (e *UsageError) Error() string { return e.Problem }

// Hint is what to do about the error.
func (e *UsageError) Hint() string { return e.Advice }

// StoreError returns err with a message that blames the store in dir, not the data to be written.
func StoreError(dir string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &UsageError{fmt.Sprintf("the store %s cannot be written: %v", dir, err), "name another folder with --store"}
}
