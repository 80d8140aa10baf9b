package ingest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dpsight/dpsight/ingest/figures"
	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/schemas"
)

// Stdin is the path that stands for the standard input.
const Stdin = "-"

// input is an open input file. If the input cannot be read twice, such as a pipe, its content was first written to a
// temporary file.
type input struct {
	*os.File
	path    string
	name    string
	size    int64
	entries []packed.Entry
	spooled string // name of a temporary file to remove at the end
}

// openInput opens a file, a pipe or the standard input.
func openInput(path, store string) (*input, error) {
	in := &input{path: path, name: filepath.Base(path)}
	var err error
	if st, statErr := os.Stat(path); path == Stdin || statErr == nil && st.Mode()&os.ModeNamedPipe != 0 {
		err = in.spool(store)
	} else {
		in.File, err = schemas.OpenRegular(path)
	}
	if err != nil {
		return nil, err
	}
	st, err := in.File.Stat()
	if err == nil {
		in.size = st.Size()
		in.entries, err = packed.List(in.File, in.size, in.name)
	}
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return in, nil
}

// spool writes the content of a pipe to a temporary file in the store.
func (in *input) spool(store string) error {
	from := os.Stdin
	if in.path != Stdin {
		f, err := os.Open(in.path)
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	} else {
		in.name = "stdin"
	}
	f, err := os.CreateTemp(store, incoming+".*"+schemas.PartialSuffix)
	if err != nil {
		return err
	}
	in.File, in.spooled = f, f.Name()
	if _, err := io.Copy(f, from); err != nil {
		in.Close()
		return err
	}
	return nil
}

func (in *input) Close() error {
	err := in.File.Close()
	if in.spooled != "" {
		os.Remove(in.spooled)
	}
	return err
}

// readable returns the entries to import: the file itself, or the entries of an archive that look like snapshots or
// have figures. readable leaves out entries that only summarise other entries.
func (in *input) readable() []packed.Entry {
	if len(in.entries) == 1 {
		return in.entries
	}
	if in.isCheckpoint() {
		return nil
	}
	kinds := make([]figures.Kind, len(in.entries))
	for i, e := range in.entries {
		kinds[i] = figuresKind(e)
	}
	var out []packed.Entry
	for i, e := range in.entries {
		if looksLikePickle(e.Name) || kinds[i] != figures.None && !isSpare(kinds[i], kinds) {
			out = append(out, e)
		}
	}
	return out
}

// entryName returns the name under which a run's manifest lists an entry's file.
func (in *input) entryName(e packed.Entry) string {
	if len(in.entries) == 1 {
		return in.name
	}
	return e.Name
}

// isCheckpoint reports whether an archive was made by torch.save.
func (in *input) isCheckpoint() bool {
	var data, version bool
	for _, e := range in.entries {
		data = data || e.Name == "data.pkl"
		version = version || e.Name == "version"
	}
	return data && version
}

// A foreign is a kind of file that dpsight does not import, recognised by its first bytes or its name.
type foreign struct {
	magic, name string // bytes at the file's begin, and a part of its name
	what        string
	advice      string
}

const noMemory = "it does not say which memory was in use"

const checkpoint = "a file of torch.save, which holds tensors and not the allocator's state"
const importable = "the page docs/import.md lists the files of other tools that dpsight reads"

var foreigns = []foreign{
	{magic: "PAR1", what: "a Parquet table", advice: "dpsight's own tables are read as part of their run's folder"},
	{magic: "SQLite format 3\x00", what: "an SQLite database, such as Nsight Systems exports", advice: noMemory},
	{name: ".nsys-rep", what: "a report of Nsight Systems", advice: noMemory},
	{name: ".ncu-rep", what: "a report of Nsight Compute", advice: noMemory},
	{name: ".qdrep", what: "a report of Nsight Systems", advice: noMemory},
	{name: "tfevents", what: "a log of TensorBoard", advice: noMemory},
	{magic: "\x93NUMPY", what: "an array of NumPy"},
	{magic: "\x7fELF", what: "a program"},
	{magic: "%PDF", what: "a PDF document"},
	{magic: "\x89PNG", what: "a picture"},
	{magic: "<!DOCTYPE", what: "a web page", advice: "ingest the .pickle file that it was made of"},
	{magic: "<html", what: "a web page", advice: "ingest the .pickle file that it was made of"},
	{magic: "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", what: checkpoint, advice: hint}, // the format of torch before 1.6
	{magic: "{", what: "a JSON document", advice: importable},
	{magic: "[", what: "a JSON document", advice: importable},
	{name: ".csv", what: "a table of text"},
}

// foreignKind returns which kind of file an input is that is no snapshot, and advice; "" = unknown.
func (in *input) foreignKind() (what, advice string) {
	if in.isCheckpoint() {
		return checkpoint, hint
	}
	head := make([]byte, 512)
	if len(in.entries) == 1 {
		if r, err := in.entries[0].Open(); err == nil {
			n, _ := io.ReadFull(r, head)
			head = head[:n]
			r.Close()
		}
	}
	for _, f := range foreigns {
		if f.magic != "" && strings.HasPrefix(string(head), f.magic) ||
			f.name != "" && strings.Contains(strings.ToLower(in.name), f.name) {
			return f.what, f.advice
		}
	}
	switch {
	case in.size == 0:
		return "an empty file", ""
	case isText(head):
		return "a text file", ""
	}
	return "", ""
}

// isText reports whether bytes are lines of text. A pickle of protocol 0 is text, too, but the caller has tried to read
// it before.
func isText(p []byte) bool {
	return utf8.Valid(p[:max(0, len(p)-utf8.UTFMax)]) && !slices.ContainsFunc(p, func(c byte) bool {
		return c < ' ' && c != '\n' && c != '\r' && c != '\t'
	})
}
