package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A run's documents end with a digest of all that stands before it, and ingest.json has the digests of the tables that
// were written with it. Nothing outside a document knows its digest: who rewrites one writes it with its own, and no
// other file has to follow. Documents and tables of older versions have none.

// digestLine begins the last line of a document that has a digest.
const digestLine = ",\n  \"digest\": \"sha256:"

// digestEnd is what comes after the digest.
const digestEnd = "\"\n}\n"

// A DamagedError says that a file is not what dpsight wrote.
type DamagedError struct {
	File   string // base name
	Reason string
	Advice string // may be empty
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Reason) }

// Hint is what to do about it.
func (e *DamagedError) Hint() string { return e.Advice }

// encodeSigned writes a document with its digest.
func encodeSigned(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := encodeDocument(&b, v); err != nil {
		return err
	}
	body, ok := bytes.CutSuffix(b.Bytes(), []byte("\n}\n"))
	if !ok {
		return errors.New("a document is a JSON object with keys")
	}
	_, err := fmt.Fprintf(w, "%s%s%s%s", body, digestLine, digestOf(body), digestEnd)
	return err
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// checkDocument compares a document with its digest, if it has one.
func checkDocument(name string, b []byte) error {
	body, digest, ok := signed(b)
	if !ok || digestOf(body) == digest {
		return nil
	}
	return &DamagedError{name, "its digest is not the one that it was written with",
		"bring it back from a copy; if you changed it on purpose, take out its last line, \"digest\""}
}

// signed takes a document with a digest apart.
func signed(b []byte) (body []byte, digest string, ok bool) {
	b, ok = bytes.CutSuffix(b, []byte(digestEnd))
	if n := len(b) - 2*sha256.Size; ok && n >= 0 {
		body, ok = bytes.CutSuffix(b[:n], []byte(digestLine))
		return body, string(b[n:]), ok
	}
	return nil, "", false
}

// Unsigned is a document without its digest, for who is to change its text.
func Unsigned(b []byte) []byte {
	if body, _, ok := signed(b); ok {
		return append(bytes.Clone(body), "\n}\n"...)
	}
	return b
}

// CheckTables compares tables of a run folder with the digests that the report has of them, which are "sha256:" and
// 64 hexadecimal digits. What the report has no digest of is not looked at.
func CheckTables(dir string, digests map[string]string, names ...string) error {
	for _, name := range names {
		want, ok := digests[name]
		if !ok {
			continue
		}
		f, err := os.Open(filepath.Join(dir, name))
		if missing(err) {
			return &DamagedError{File: name, Reason: "the table was written, and is gone"}
		} else if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
		if got := "sha256:" + hex.EncodeToString(h.Sum(nil)); got != want {
			return &DamagedError{File: name, Reason: "its digest is not the one that it was written with"}
		}
	}
	return nil
}
