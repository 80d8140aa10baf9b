package selected

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/export"
	"github.com/dpsight/dpsight/report/resultjson"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// Exports are the names of the formats.
var Exports = []string{ResultJSON, export.Perfetto, export.TensorBoard, export.Arrow}

// ResultJSON is the format of the profiler that dpsight replaces, see [resultjson].
const ResultJSON = "result-json"

// Export writes the runs in a format to a file or a folder, or to stdout if out is "". Only a single run, in a format
// with one file, can go to stdout. paths are the written files if out is a folder.
func (r *Runs) Export(format, out string, force bool, stdout io.Writer) (paths []string, err error) {
	if len(r.Runs) > 1 && out == "" {
		return nil, schemas.WithHint(fmt.Errorf("%d runs do not go into one file", len(r.Runs)),
			"name a folder with -o, or one run")
	}
	if format == ResultJSON {
		profiles, err := RowsOf(r, analyze.SummaryTables, analyze.Profile)
		if err != nil {
			return nil, err
		}
		if out == "" {
			return nil, resultjson.New(profiles[0]).Write(stdout)
		}
		return resultjson.WriteAll(out, profiles, force)
	}
	if out == "" && format != export.Perfetto {
		return nil, schemas.WithHint(fmt.Errorf("%s is written into a folder", format), "name one with -o, as in -o out")
	}
	// Runs are exported one after another, since each has all its events in memory.
	names := r.fileNames()
	_, err = r.Each(export.Tables, false, func(in schemas.Tables) error {
		run, err := export.Of(in)
		if err != nil {
			return err
		}
		if format == export.Perfetto && (out == "" || len(r.Runs) == 1 && !resultjson.IsFolder(out)) {
			if out == "" {
				return run.WritePerfetto(stdout)
			}
			return export.WriteFile(out, run.WritePerfetto, force)
		}
		var pictures []export.Picture
		if format == export.TensorBoard {
			if pictures, err = r.pictures(in.Manifest.RunID); err != nil {
				return err
			}
		}
		files := run.Files(format, names[run.RunID], pictures)
		if len(files) == 0 {
			return fmt.Errorf("run %s has no steps and no events: there is nothing to export", in.Manifest.RunID)
		}
		more, err := export.WriteAll(out, files, force)
		paths = append(paths, more...)
		return err
	})
	return paths, err
}

// fileNames returns, by run id, each run's name in an export: its own name, or its id if several runs have the name.
func (r *Runs) fileNames() map[string]string {
	names, count := map[string]string{}, map[string]int{}
	for _, run := range r.Runs {
		names[run.ID] = units.FileName(run.Manifest.Name)
		count[strings.ToLower(names[run.ID])]++ // some file systems do not distinguish upper and lower case
	}
	for id, name := range names {
		if count[strings.ToLower(name)] > 1 || name == "" {
			names[id] = units.FileName(id)
		}
	}
	return names
}

// pictures returns the figures of a run's report.
func (r *Runs) pictures(id string) (out []export.Picture, err error) {
	one := r.Only(slices.DeleteFunc(slices.Clone(r.Runs), func(run store.Run) bool { return run.ID != id }))
	m, err := r.quiet(one).Model("")
	if err != nil {
		return nil, err
	}
	for _, f := range m.Figures() {
		var b bytes.Buffer
		if err := f.WritePNG(&b); err != nil {
			return nil, err
		}
		size, err := png.DecodeConfig(bytes.NewReader(b.Bytes()))
		if err != nil {
			return nil, err
		}
		out = append(out, export.Picture{Tag: f.Name, Width: size.Width, Height: size.Height, PNG: b.Bytes()})
	}
	return out, nil
}
