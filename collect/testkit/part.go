package testkit

import (
	"os"
	"testing"
)

// partVariable names the environment variable that selects tests. Without it, the tests of `make test` run. "rest"
// selects the tests that only `make test-rest` runs, and "all" selects both.
const partVariable = "DPSIGHT_TEST_PART"

// Part skips a test that is not in the selected part. Tests for which rest is true are further cases of something that
// another test in the same package checks. Each such test starts Python and torch, which takes four seconds of a core.
func Part(t testing.TB, rest bool) {
	t.Helper()
	switch part := os.Getenv(partVariable); {
	case part == "" && rest:
		t.Skip("LEFT OUT: make test-rest runs it")
	case part == "rest" && !rest:
		t.Skip("make test runs it")
	}
}

// Rest skips a test unless the rest of the tests was selected: `make test` leaves it out.
func Rest(t testing.TB) {
	t.Helper()
	Part(t, true)
}

// WithRest reports whether tests that `make test` leaves out also run.
func WithRest() bool { return os.Getenv(partVariable) != "" }
