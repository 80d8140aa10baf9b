package examples_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// DuckDB, polars and pandas read every table in the way that the documentation shows, without a cast.
func TestTablesAreReadByOthers(t *testing.T) {
	testkit.Rest(t)
	python := os.Getenv("DPSIGHT_TEST_NOTEBOOKS_PYTHON")
	if python == "" {
		t.Skip("DPSIGHT_TEST_NOTEBOOKS_PYTHON is unset: it names a Python with what is in requirements/notebooks.txt")
	}
	out, err := exec.Command(python, "tests/read_tables.py", headline).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
