package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/dpsight/dpsight/schemas"
)

// The formats of an export.
const (
	Perfetto    = "perfetto"
	TensorBoard = "tensorboard"
	Arrow       = "arrow"
)

// A File is one file of a run.
type File struct {
	Path  string // path below the folder of the export, with slashes
	Write func(io.Writer) error
}

// Files returns the files of a run in a format. name distinguishes the run from the other exported runs. A run without
// devices has only a trace.
func (r *Run) Files(format, name string, pictures []Picture) (files []File) {
	if format == Perfetto {
		return []File{{name + ".perfetto.json", r.WritePerfetto}}
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		folder := name
		if len(r.Devices) > 1 {
			folder += "/" + strings.ReplaceAll(r.title(d), ":", "")
		}
		if format == TensorBoard {
			shown := pictures
			if i > 0 { // the pictures belong to the run: only its first file has them
				shown = nil
			}
			files = append(files, File{fmt.Sprintf("%s/%s%d.dpsight", folder, EventFile, r.start()/1e9),
				func(w io.Writer) error { return d.WriteTensorBoard(w, shown) }})
			continue
		}
		for _, t := range d.Tables() {
			files = append(files, File{folder + "/" + t.Name + ".arrow",
				func(w io.Writer) error { return t.Write(w, r.RunID) }})
		}
	}
	return files
}

// WriteAll writes files below a folder. Without force it overwrites only files that an export wrote.
func WriteAll(out string, files []File, force bool) (paths []string, err error) {
	for _, f := range files {
		path := filepath.Join(out, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return paths, unwritten(err)
		}
		if err := WriteFile(path, f.Write, force); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// WriteFile writes one file. Without force it overwrites only a file that an export wrote.
func WriteFile(path string, write func(io.Writer) error, force bool) error {
	if !force {
		if err := schemas.CheckOwn(path, IsExport); err != nil {
			return err
		}
	}
	return unwritten(schemas.WriteFile(path, write))
}

func unwritten(err error) error {
	if err == nil {
		return nil
	}
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		err = fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return schemas.WithHint(fmt.Errorf("the export cannot be written: %w", err), "name another file or folder with -o")
}

// IsExport reports whether an export wrote a file.
func IsExport(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if strings.HasSuffix(path, ".arrow") {
		r, err := ipc.NewFileReader(f)
		if err != nil {
			return false
		}
		defer r.Close()
		by, _ := r.Schema().Metadata().GetValue(generator)
		return by == "dpsight"
	}
	head := make([]byte, 128)
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	if strings.HasSuffix(path, ".dpsight") {
		return bytes.Contains(head, []byte(fileVersion))
	}
	return bytes.Contains(head, []byte(`"generator":"dpsight"`))
}
