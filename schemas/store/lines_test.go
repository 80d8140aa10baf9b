package store

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// The text of a source line is shown only if the file has the same content as at run time.
func TestLineTexts(t *testing.T) {
	dir, run := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "src", "train.py")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "import torch\n\n    x = torch.ones(1)\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	sum := sha256.Sum256([]byte(text))
	file := filepath.Join("src", "train.py")
	rows := []schemas.Line{{RunID: "r", Line: 1, File: file, Number: 3, Function: "f"},
		{RunID: "r", Line: 2, File: file, Number: 90}, {RunID: "r", Line: 3, File: "other.py", Number: 1}}
	if err := schemas.Lines.Write(run, rows); err != nil {
		t.Fatal(err)
	}
	r := Run{Dir: run, Manifest: &schemas.Manifest{Command: []string{"python", path},
		Code: &schemas.Code{Files: []schemas.CodeFile{{File: file, SHA256: new(hex.EncodeToString(sum[:]))}}}}}
	texts := func() (all []string) {
		t.Helper()
		got, _, err := lines(r)
		if err != nil || len(got) != len(rows) {
			t.Fatalf("%v, %v", got, err)
		}
		for _, l := range got {
			all = append(all, l.Text)
		}
		return all
	}
	if got := texts(); got[0] != "x = torch.ones(1)" || got[1] != "" || got[2] != "" {
		t.Errorf("%q", got)
	}
	write(text + "#\n")
	if got := texts(); got[0] != "" {
		t.Errorf("of a file that changed: %q", got)
	}
}
