package collect

import (
	"errors"
	"fmt"
	"io/fs"
)

// A UsageError reports a mistake in the request, or that the machine cannot fulfil it. Nothing was run.
type UsageError struct {
	Problem string
	Advice  string // what to do about it; may be empty
}

func (e *UsageError) Error() string { return e.Problem }

// Hint returns what the user can do about the error.
func (e *UsageError) Hint() string { return e.Advice }

// StoreError returns err with a message that names the store in dir as the cause, rather than the data.
func StoreError(dir string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &UsageError{fmt.Sprintf("the store %s cannot be written: %v", dir, err), "name another folder with --store"}
}
