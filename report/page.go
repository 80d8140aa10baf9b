package report

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
)

// WritePage writes only the page of a report. Unless the model's Force is set, it refuses to overwrite a file that is
// no such page.
func WritePage(path string, m Model) error {
	old, err := firstBytes(path, 4096)
	if !m.Force && (err == nil || !errors.Is(err, fs.ErrNotExist)) && !bytes.Contains(old, []byte(page.Generator)) {
		return &folder.ForeignError{Path: path}
	}
	return folder.Unwritable(schemas.WriteFile(path, m.Page))
}

// firstBytes reads the beginning of a file.
func firstBytes(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}
