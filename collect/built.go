package collect

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/dpsight/dpsight/collect/agent"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
)

// revision is the commit of a build for which go build found no repository. revision ends with "+modified" if files had
// been changed. scripts/wheels.py sets revision, by the linker.
var revision string

// Built says which code this binary was built from.
var Built = sync.OnceValue(func() schemas.Built {
	b := schemas.Built{Agent: hashOfFiles(agent.FS()), Phantom: hashOfFiles(all(phantom.Files())...)}
	if revision != "" {
		b.Revision, b.Modified = linkedRevision(revision)
	} else if info, ok := debug.ReadBuildInfo(); ok {
		b.Revision, b.Modified = revisionOf(info.Settings)
	}
	return b
})

func all(files []embed.FS) []fs.FS {
	var out []fs.FS
	for _, f := range files {
		out = append(out, f)
	}
	return out
}

// linkedRevision parses the revision that the linker wrote.
func linkedRevision(text string) (revision *string, modified *bool) {
	commit, changed := strings.CutSuffix(text, "+modified")
	return &commit, &changed
}

// revisionOf returns the commit of a build, and whether files had been changed. revision and modified are nil if go
// build recorded no commit.
func revisionOf(settings []debug.BuildSetting) (revision *string, modified *bool) {
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			revision = &s.Value
		case "vcs.modified":
			modified = new(s.Value == "true")
		}
	}
	return revision, modified
}

// hashOfFiles returns a hash of files with their names.
func hashOfFiles(files ...fs.FS) string {
	hash := sha256.New()
	for _, f := range files {
		err := fs.WalkDir(f, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := fs.ReadFile(f, path)
			fmt.Fprintf(hash, "%s %d\n%s\n", path, len(data), data)
			return err
		})
		if err != nil {
			panic(err) // embedded files are part of the binary
		}
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))[:16]
}
