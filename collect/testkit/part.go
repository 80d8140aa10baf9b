package testkit

import (
	"os"
	"testing"
)

// partVariable names the environment variable that selects tests. Unset runs the tests of `make test`, "rest" the
// ones that only `make test-rest` runs, and "all" both.
const partVariable = "DPSIGHT_TEST_PART"

// Part skips a test that does not belong to the selected part of the tests. The rest are further cases of what another
// test in the same package shows. Each such test starts Python and torch, which takes four seconds of a core.
func Part(t testing.TB, rest bool) {
	t.Helper()
	switch part := os.Getenv(partVariable); {
	case part == "" && rest:
		t.Skip("LEFT OUT: make test-rest runs it")
	case part == "rest" && !rest:
		t.Skip("make test runs it")
	}
}

// Rest skips a test that `make test` leaves out.
func Rest(t testing.TB) {
	t.Helper()
	Part(t, true)
}

// WithRest reports whether what `make test` leaves out runs too.
func WithRest() bool { return os.Getenv(partVariable) != "" }
