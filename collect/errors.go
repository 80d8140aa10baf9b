package collect

// A UsageError is a mistake in what was asked for, or a machine that cannot do it: nothing was run.
type UsageError struct {
	Problem string
	Hint    string // what to do about it, may be empty
}

func (e *UsageError) Error() string { return e.Problem }

// ExitCode is the process's exit code for this error.
func (e *UsageError) ExitCode() int { return 2 }
