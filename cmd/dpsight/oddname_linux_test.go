package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// dpsight finds a script whose file name is not valid UTF-8. In the run's name, escapes stand for the invalid bytes,
// so that two such names stay different.
func TestScriptsNameThatIsNoText(t *testing.T) {
	script := filepath.Join(t.TempDir(), "train\xff.py")
	text := "import torch\nx = torch.zeros(1000, device='cuda')\n"
	switch err := os.WriteFile(script, []byte(text), 0o600); {
	case errors.Is(err, syscall.EILSEQ) && os.Getenv("CI") == "":
		t.Skip("the file system refuses names that are not valid UTF-8")
	case err != nil:
		t.Fatal(err)
	}
	store := t.TempDir()
	r, doc := predictDocument(t, store, nil, "--", python(t), script)
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Status != schemas.StatusOK {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	m, err := schemas.ReadManifest(filepath.Join(store, doc.Runs[0].RunID))
	if err != nil || m.Name != `train\udcff` || !strings.HasSuffix(m.Command[1], `train\udcff.py`) {
		t.Errorf("%v: %+v", err, m)
	}
	gone := strings.TrimSuffix(script, ".py") + "2.py"
	if r := dpsight(t, "", "predict", "--", python(t), gone); r.code == exitDone ||
		!strings.Contains(r.stderr, "2.py: no such script") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}
