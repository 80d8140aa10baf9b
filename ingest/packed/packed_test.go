package packed

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const content = "what is packed\n"

func through(t testing.TB, p []byte, writer func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := writer(&b)
	if err == nil {
		_, err = w.Write(p)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, p []byte) []byte {
	return through(t, p, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func s2Packed(t testing.TB, p []byte) []byte {
	return through(t, p, func(w io.Writer) (io.WriteCloser, error) { return s2.NewWriter(w), nil })
}

func zstdPacked(t testing.TB, p []byte) []byte {
	return through(t, p, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
}

func xzPacked(t testing.TB, p []byte) []byte {
	return through(t, p, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })
}

// bzipped returns the test's content as Python's bz2 compressed it, since Go has no writer for bzip2.
func bzipped(t testing.TB) []byte {
	p, err := base64.StdEncoding.DecodeString(
		"QlpoOTFBWSZTWSlPnJoAAAdRgAAQQAAuaEyAIAAxANABRphNP0jgXVi+cUrBdyRThQkClPnJoA==")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func zipOf(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, p := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write(p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t testing.TB, names []string, p []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "folder/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		err := w.WriteHeader(&tar.Header{Name: "folder/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(p))})
		if err == nil {
			_, err = w.Write(p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestList checks that each kind of archive and compression gives the same content, and that each entry can be read
// twice.
func TestList(t *testing.T) {
	plain := []byte(content)
	for _, c := range []struct {
		name  string
		p     []byte
		names string // names of the entries, in order
	}{
		{"a.pickle", plain, "a.pickle"},
		{"dir/a.pickle.gz", gzipped(t, plain), "a.pickle"},
		{`dir\a.pickle.ZST`, zstdPacked(t, plain), "a.pickle"},
		{"a.pickle.s2", s2Packed(t, plain), "a.pickle"},
		{"a.pickle.xz", xzPacked(t, plain), "a.pickle"},
		{"a.pickle.bz2", bzipped(t), "a.pickle"},
		// the content decides how a file is unpacked, and not its name
		{"a.pickle", gzipped(t, zstdPacked(t, plain)), "a.pickle"},
		{"a.zip", zipOf(t, map[string][]byte{"deep/a.pickle.gz": gzipped(t, plain)}), "a.pickle"},
		{"a.tar", tarOf(t, []string{"a.pickle", "b.pickle"}, plain), "a.pickle b.pickle"},
		{"a.tgz", gzipped(t, tarOf(t, []string{"a.pickle", "b.pickle.xz"}, xzPacked(t, plain))), "a.pickle b.pickle"},
		{"empty.zip", zipOf(t, map[string][]byte{"empty/": nil}), ""},
	} {
		entries, err := List(bytes.NewReader(c.p), int64(len(c.p)), c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
			for range 2 {
				r, err := e.Open()
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				got, err := io.ReadAll(r)
				if err != nil || string(got) != content {
					t.Errorf("%s: %q, %v", c.name, got, err)
				}
				if err := r.Close(); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("%s: entries %q, want %q", c.name, got, c.names)
		}
	}
}

// TestDamaged checks that the error for a file that cannot be unpacked names the packing.
func TestDamaged(t *testing.T) {
	plain := []byte(strings.Repeat(content, 1000))
	zipped, packedZstd, packedXZ := gzipped(t, plain), zstdPacked(t, plain), xzPacked(t, plain)
	packedS2 := s2Packed(t, plain)
	deep := plain
	for range maxDepth + 1 {
		deep = gzipped(t, deep)
	}
	archive := zipOf(t, map[string][]byte{"a.pickle": plain})
	for _, c := range []struct {
		p    []byte
		want string
	}{
		{zipped[:len(zipped)/2], "gzip: "},
		{packedZstd[:len(packedZstd)/2], "zstd: "},
		{packedS2[:len(packedS2)/2], "S2: "},
		{packedXZ[:len(packedXZ)/2], "xz: "},
		{bzipped(t)[:20], "bzip2: "},
		{archive[:len(archive)/2], "zip: "},
		{deep, "packed more than 4 times"},
		{gzipped(t, archive), "unpack it first"},
		{tarOf(t, []string{"model.pt"}, archive), "unpack it first"},
		{zipOf(t, map[string][]byte{"a.pickle.gz": zipped[:len(zipped)/2]}), "gzip: "},
	} {
		entries, err := List(bytes.NewReader(c.p), int64(len(c.p)), "a")
		for _, e := range entries {
			r, openErr := e.Open()
			if err = openErr; err == nil {
				_, err = io.ReadAll(r)
				r.Close()
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want …%s…", err, c.want)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte(content))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte("BZh9"))
	plain := []byte(strings.Repeat(content, 3))
	for _, p := range [][]byte{gzipped(f, plain), s2Packed(f, plain), zstdPacked(f, plain), xzPacked(f, plain), bzipped(f),
		zipOf(f, map[string][]byte{"a.pickle": plain}), gzipped(f, tarOf(f, []string{"a.pickle"}, plain))} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		entries, err := List(bytes.NewReader(p), int64(len(p)), "a")
		if err != nil {
			return
		}
		for _, e := range entries {
			if r, err := e.Open(); err == nil {
				_, _ = io.CopyN(io.Discard, r, 1<<20)
				r.Close()
			}
		}
	})
}
