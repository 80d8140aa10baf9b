// Package packed opens files that are plain, compressed by gzip, zstd, xz or bzip2, in a zip archive, in a tar archive,
// or in several of these inside one another. Package packed recognises compressions and archives by their first bytes,
// not by their names.
package packed

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const (
	maxDepth   = 4         // how deep archives may lie inside one another
	maxEntries = 1000      // how many entries of one archive are read
	maxTar     = 256 << 30 // how many bytes of an archive are read
	tarHead    = 512
)

// An Entry is one file inside a packed file, or a plain file itself.
type Entry struct {
	Name string // name of the file, without folders and without suffixes of compression
	// Folder is the entry's folder in its archive; empty = none. An archive inside the archive counts as a folder.
	Folder string
	Packed bool // the entry is not the file itself
	open   opener
}

type opener func() (io.ReadCloser, error)

// Open reads the entry from its beginning, unpacked. Each call returns a new reader.
func (e Entry) Open() (io.ReadCloser, error) { return e.open() }

// List returns the entries in a file of size bytes. r must stay open as long as entries are read.
func List(r io.ReaderAt, size int64, name string) ([]Entry, error) {
	head := make([]byte, 4)
	if n, _ := r.ReadAt(head, 0); n == len(head) && string(head) == zipMagic {
		return zipEntries(r, size)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(r, 0, size)), nil }
	start, err := peek(open)
	if err != nil {
		return nil, err
	}
	return expand(path.Base(strings.ReplaceAll(name, `\`, "/")), start, open, 0)
}

const zipMagic = "PK\x03\x04"

// A compression is a format in which a stream can be compressed.
type compression struct {
	name, magic string
	suffixes    []string
	reader      func(io.Reader) (io.ReadCloser, error)
}

var compressions = []compression{
	{"gzip", "\x1f\x8b", []string{".gz", ".gzip"}, func(r io.Reader) (io.ReadCloser, error) {
		return gzip.NewReader(bufio.NewReaderSize(r, 1<<20))
	}},
	{"zstd", "\x28\xb5\x2f\xfd", []string{".zst", ".zstd"}, func(r io.Reader) (io.ReadCloser, error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}},
	{"S2", "\xff\x06\x00\x00S2sTwO", []string{".s2"}, func(r io.Reader) (io.ReadCloser, error) {
		return io.NopCloser(s2.NewReader(r)), nil
	}},
	{"xz", "\xfd7zXZ\x00", []string{".xz"}, func(r io.Reader) (io.ReadCloser, error) {
		z, err := xz.NewReader(bufio.NewReaderSize(r, 1<<20))
		return io.NopCloser(z), err
	}},
	{"bzip2", "BZh", []string{".bz2"}, func(r io.Reader) (io.ReadCloser, error) {
		return io.NopCloser(bzip2.NewReader(bufio.NewReaderSize(r, 1<<20))), nil
	}},
}

// Plain returns a file's name without the suffixes of compressions and archives.
func Plain(name string) string {
	for {
		rest := name
		for _, suffix := range append([]string{".tgz", ".tar", ".zip"}, allSuffixes...) {
			if n := len(name) - len(suffix); n > 0 && strings.EqualFold(name[n:], suffix) {
				rest = name[:n]
			}
		}
		if rest == name {
			return name
		}
		name = rest
	}
}

var allSuffixes = func() (all []string) {
	for _, c := range compressions {
		all = append(all, c.suffixes...)
	}
	return all
}()

// expand returns the entries in a stream that begins with head: the stream itself, or the files that are packed in it.
func expand(name string, head []byte, open opener, depth int) ([]Entry, error) {
	if depth == maxDepth {
		return nil, fmt.Errorf("%s is packed more than %d times", name, maxDepth)
	}
	for _, c := range compressions {
		if strings.HasPrefix(string(head), c.magic) {
			unpacked := func() (io.ReadCloser, error) { return unpack(open, c) }
			start, err := peek(unpacked)
			if err != nil {
				return nil, err
			}
			return expand(name, start, unpacked, depth+1)
		}
	}
	switch {
	case len(head) == tarHead && string(head[257:262]) == "ustar":
		return tarEntries(name, open, depth+1)
	case depth > 0 && strings.HasPrefix(string(head), zipMagic):
		return nil, fmt.Errorf("%s holds a zip archive: unpack it first", name)
	}
	return []Entry{{Name: Plain(name), Packed: depth > 0, open: open}}, nil
}

// member returns the entries in one file of an archive. A file that cannot be unpacked stays an entry, and opening that
// entry returns the error.
func member(at string, head []byte, open opener, depth int) []Entry {
	inside, err := expand(path.Base(at), head, open, depth)
	if err != nil {
		return []Entry{broken(at, err)}
	}
	for i := range inside {
		if e := &inside[i]; e.Folder == "" {
			e.Folder = path.Dir(at)
		} else {
			e.Folder = path.Join(at, e.Folder)
		}
	}
	return inside
}

func broken(at string, err error) Entry {
	return Entry{Plain(path.Base(at)), path.Dir(at), true, func() (io.ReadCloser, error) { return nil, err }}
}

func peek(open opener) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return begin(r)
}

// begin reads enough of a stream to recognise its kind.
func begin(r io.Reader) ([]byte, error) {
	head := make([]byte, tarHead)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	return head[:n], nil
}

// A pair is a reader that has two closers; Close closes both.
type pair struct {
	io.ReadCloser
	below io.Closer
}

func (p pair) Close() error { return errors.Join(p.ReadCloser.Close(), p.below.Close()) }

func unpack(open opener, c compression) (io.ReadCloser, error) {
	below, err := open()
	if err != nil {
		return nil, err
	}
	r, err := c.reader(below)
	if err != nil {
		below.Close()
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return pair{named{r, c.name}, below}, nil
}

// named adds to a stream's errors in which format the stream is packed.
type named struct {
	io.ReadCloser
	by string
}

func (n named) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", n.by, err)
	}
	return k, err
}

func zipEntries(r io.ReaderAt, size int64) ([]Entry, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("zip: %w", err)
	}
	if len(archive.File) > maxEntries {
		return nil, fmt.Errorf("zip: more than %d files", maxEntries)
	}
	var out []Entry
	for _, f := range archive.File {
		if !f.Mode().IsRegular() {
			continue
		}
		head, err := peek(f.Open)
		if err != nil {
			out = append(out, broken(f.Name, fmt.Errorf("zip: %w", err)))
			continue
		}
		out = append(out, member(f.Name, head, f.Open, 1)...)
	}
	return out, nil
}

func tarEntries(name string, open opener, depth int) ([]Entry, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	archive := tar.NewReader(io.LimitReader(r, maxTar))
	var out []Entry
	for at := 0; ; at++ {
		header, err := archive.Next()
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("tar: %w", err)
		case at == maxEntries:
			return nil, fmt.Errorf("%s: tar: more than %d files", name, maxEntries)
		case header.Typeflag != tar.TypeReg:
			continue
		}
		head, err := begin(archive)
		if err != nil {
			return nil, fmt.Errorf("tar: %w", err)
		}
		again := func() (io.ReadCloser, error) { return tarMember(open, at) }
		out = append(out, member(header.Name, head, again, depth)...)
	}
}

// tarMember opens the file with a given index in a tar archive. tarMember has to read the archive from its beginning.
func tarMember(open opener, at int) (io.ReadCloser, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(io.LimitReader(r, maxTar))
	for range at + 1 {
		if _, err := archive.Next(); err != nil {
			r.Close()
			return nil, fmt.Errorf("tar: %w", err)
		}
	}
	return pair{io.NopCloser(archive), r}, nil
}
