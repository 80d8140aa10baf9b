package schemas

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// MainModule is the name under which Python runs a script as a module.
const MainModule = "__main__"

// Code (in run.json) is the user's own Python code that a run executed: its scripts, and the modules that they imported
// from their repository or from a folder that the user named. Installed packages do not belong to a run's code. Only
// recorded processes report their code.
type Code struct {
	// Digest covers the names and contents of all files: equal digests mean equal code. Digest is null if the content
	// of a file is not known.
	Digest *string    `json:"digest"` // "sha256:" and 16 hexadecimal digits
	Files  []CodeFile `json:"files"`  // the scripts first, then modules by name
}

// CodeFile is one file of a run's code.
type CodeFile struct {
	Module string  `json:"module"` // the module's name; [MainModule] is a script itself
	File   string  `json:"file"`   // path relative to the repository; "-c" is the text behind python -c
	SHA256 *string `json:"sha256"` // digest of the contents; null if they could not be read, or if Changed
	// Changed is true if the file was changed after its process had begun and before it was hashed, so the imported
	// content is unknown.
	Changed bool `json:"changed,omitempty"`
}

// NewCode merges the files that the processes of a run reported. NewCode returns nil if no process reported a file.
func NewCode(processes ...[]CodeFile) *Code {
	var files []CodeFile
	for _, p := range processes {
		files = append(files, p...)
	}
	if len(files) == 0 {
		return nil
	}
	rank := func(f CodeFile) int {
		if f.Module == MainModule {
			return 0
		}
		return 1
	}
	hash := func(f CodeFile) string {
		if f.SHA256 == nil {
			return ""
		}
		return *f.SHA256
	}
	slices.SortFunc(files, func(a, b CodeFile) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Module, b.Module), cmp.Compare(hash(a), hash(b)),
			cmp.Compare(a.File, b.File))
	})
	files = slices.CompactFunc(files, func(a, b CodeFile) bool {
		return a.Module == b.Module && a.File == b.File && hash(a) == hash(b)
	})
	code := &Code{Files: files}
	sum := sha256.New()
	for _, f := range files {
		if f.SHA256 == nil {
			return code
		}
		fmt.Fprintf(sum, "%q %s\n", f.Module, *f.SHA256)
	}
	code.Digest = new("sha256:" + hex.EncodeToString(sum.Sum(nil))[:16])
	return code
}
