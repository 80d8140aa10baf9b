package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// A document of a store ends with a digest of everything before it. The digests of a run's tables are in the document
// that was written with them: ingest.json for tables that ingest makes, run.json for the collector's samples. No
// document stores the digest of another document, so a program can rewrite one document without changing others.
// Documents and tables of older versions have no digests.

// digestLine begins the last line of a document that has a digest.
const digestLine = ",\n  \"digest\": \"sha256:"

// digestEnd is the text after the digest, with which a document ends.
const digestEnd = "\"\n}\n"

// A DamagedError says that a file's content is no longer what dpsight wrote.
type DamagedError struct {
	File   string // base name of the file
	Reason string
	Advice string // what the user should do; may be empty
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Reason) }

// Hint returns advice on what to do about the damaged file.
func (e *DamagedError) Hint() string { return e.Advice }

// encodeSigned writes v as JSON, followed by its digest.
func encodeSigned(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := encodeDocument(&b, v); err != nil {
		return err
	}
	out, err := Signed(b.Bytes())
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// Signed returns the document b, which has no digest, with its digest.
func Signed(b []byte) ([]byte, error) {
	body, ok := bytes.CutSuffix(b, []byte("\n}\n"))
	if !ok {
		return nil, errors.New("a document is an indented JSON object with keys")
	}
	return fmt.Appendf(nil, "%s%s%s%s", body, digestLine, digestOf(body), digestEnd), nil
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// checkDocument compares a document with its digest, and reports whether the document has one.
func checkDocument(name string, b []byte) (has bool, err error) {
	body, digest, has := signed(b)
	if has && digestOf(body) != digest {
		return true, &DamagedError{name, "its digest is not the one that it was written with", adviceOn(name)}
	}
	return has, nil
}

// adviceOn returns advice on what to do about a damaged document.
func adviceOn(name string) string {
	if name == IngestReportFile {
		return "dpsight ingest --again makes it and the tables again"
	}
	return "bring it back from a copy; dpsight's documents are not to be changed by hand"
}

// signed splits a document into its text and its digest. ok is false if the document has no digest.
func signed(b []byte) (body []byte, digest string, ok bool) {
	b, ok = bytes.CutSuffix(b, []byte(digestEnd))
	if n := len(b) - 2*sha256.Size; ok && n >= 0 {
		body, ok = bytes.CutSuffix(b[:n], []byte(digestLine))
		return body, string(b[n:]), ok
	}
	return nil, "", false
}

// Unsigned returns a document without its digest, for code that changes the document's text.
func Unsigned(b []byte) []byte {
	if body, _, ok := signed(b); ok {
		return append(bytes.Clone(body), "\n}\n"...)
	}
	return b
}

// TableDigests returns, by name, the digests of the named tables that the run folder has: see [CheckTables].
func TableDigests(dir string, names ...string) (map[string]string, error) {
	digests := map[string]string{}
	for _, name := range names {
		digest, err := digestOfFile(filepath.Join(dir, name))
		if missing(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		digests[name] = digest
	}
	return digests, nil
}

// digestOfFile returns a file's SHA-256 as "sha256:" and 64 hexadecimal digits.
func digestOfFile(path string) (string, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// CheckTables compares tables of a run folder with the digests taken when they were written. digests maps a table's
// file name to its digest. CheckTables skips a table that digests does not list.
func CheckTables(dir string, digests map[string]string, names ...string) error {
	for _, name := range names {
		want, ok := digests[name]
		if !ok {
			continue
		}
		got, err := digestOfFile(filepath.Join(dir, name))
		switch {
		case missing(err):
			return &DamagedError{name, "the table was written, and is gone", adviceOnTable(name)}
		case err != nil:
			return err
		case got != want:
			return &DamagedError{name, "its digest is not the one that it was written with", adviceOnTable(name)}
		}
	}
	return nil
}

// adviceOnTable returns advice on what to do about a damaged table.
func adviceOnTable(name string) string {
	if Sampled(name) {
		return "bring it back from a copy: nothing makes it again"
	}
	return "dpsight ingest --again makes the tables again"
}
