package store

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// lines reads the lines of the script that requested blocks. lines also returns the text of each line and the whole
// files, if the files are available and have not changed since the run.
func lines(r Run) ([]schemas.Line, map[string][]string, error) {
	rows, err := schemas.Lines.ReadOptional(r.Dir)
	if err != nil || len(rows) == 0 || r.Manifest.Code == nil {
		return rows, nil, err
	}
	digests := map[string][]string{} // digests by file: two processes of a run may have seen different contents
	for _, f := range r.Manifest.Code.Files {
		if f.SHA256 != nil {
			digests[f.File] = append(digests[f.File], *f.SHA256)
		}
	}
	texts := map[string][]string{}
	for i := range rows {
		l := &rows[i]
		if _, known := texts[l.File]; !known {
			texts[l.File] = nil
			if len(digests[l.File]) == 1 {
				texts[l.File] = source(l.File, digests[l.File][0], r.Manifest.Command)
			}
		}
		if text := texts[l.File]; l.Number >= 1 && l.Number <= int64(len(text)) {
			l.Text = strings.TrimSpace(text[l.Number-1])
		}
	}
	return rows, texts, nil
}

// maxSource is the largest size, in bytes, of a source file that is read for its lines.
const maxSource = 16 << 20

// source returns the lines of the source file with a digest, or nil if no such file is found. source looks in the
// working folder, in the folders above it, and in the folders that the command names.
func source(file, digest string, command []string) []string {
	for _, path := range candidates(file, command) {
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() || st.Size() > maxSource {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) == digest {
			return strings.Split(strings.ToValidUTF8(string(data), "?"), "\n")
		}
	}
	return nil
}

// candidates returns the paths at which a file may lie whose name is relative to its repository.
func candidates(file string, command []string) (paths []string) {
	file = filepath.FromSlash(file)
	if filepath.IsAbs(file) {
		return []string{file}
	}
	var from []string
	if dir, err := os.Getwd(); err == nil {
		from = append(from, dir)
	}
	for _, arg := range command {
		if strings.HasSuffix(arg, ".py") {
			if whole, err := filepath.Abs(arg); err == nil {
				from = append(from, filepath.Dir(whole))
			}
		}
	}
	for _, dir := range from {
		for ; ; dir = filepath.Dir(dir) {
			paths = append(paths, filepath.Join(dir, file))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return paths
}
