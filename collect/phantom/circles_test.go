package phantom

import (
	"cmp"
	"debug/elf"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// references has, for each file, the files that it refers to.
type references map[string][]string

// circle returns a chain of files in which each refers to the next and the last to the first; nil if there is none.
func (r references) circle() []string {
	done := map[string]bool{}
	var follow func(chain []string, file string) []string
	follow = func(chain []string, file string) []string {
		if i := slices.Index(chain, file); i >= 0 {
			return chain[i:]
		}
		if done[file] {
			return nil
		}
		for _, next := range r[file] {
			if found := follow(append(chain, file), next); found != nil {
				return found
			}
		}
		done[file] = true
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(r)) {
		if found := follow(nil, file); found != nil {
			return found
		}
	}
	return nil
}

func TestCircle(t *testing.T) {
	tree := references{"a": {"b", "c"}, "b": {"c"}, "c": nil}
	if found := tree.circle(); found != nil {
		t.Errorf("a tree has the circle %q", found)
	}
	tree["c"] = []string{"b"}
	if found := tree.circle(); !slices.Equal(found, []string{"b", "c"}) {
		t.Errorf("found %q, and b and c refer to each other", found)
	}
}

// sourcesOf returns the phantom GPU's source files with one of the extensions, by their path in csrc.
func sourcesOf(t *testing.T, extensions ...string) (files []string) {
	t.Helper()
	err := fs.WalkDir(sources, "csrc", func(name string, _ fs.DirEntry, err error) error {
		if slices.Contains(extensions, path.Ext(name)) {
			files = append(files, strings.TrimPrefix(name, "csrc/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var includeLine = regexp.MustCompile(`(?m)^#include "([^"]+)"`)

// No source file of the phantom GPU includes itself, directly or through other files.
func TestIncludesHaveNoCircle(t *testing.T) {
	includes := references{}
	files := sourcesOf(t, ".c", ".h", ".cpp")
	count := 0
	for _, file := range files {
		text, err := sources.ReadFile(path.Join("csrc", file))
		if err != nil {
			t.Fatal(err)
		}
		includes[file] = nil
		for _, match := range includeLine.FindAllStringSubmatch(string(text), -1) {
			included := path.Join(path.Dir(file), match[1])
			if slices.Contains(files, included) {
				includes[file] = append(includes[file], included)
				count++
			}
		}
	}
	if count < len(files)/2 {
		t.Fatalf("%d files include %d of their own", len(files), count)
	}
	if found := includes.circle(); found != nil {
		t.Errorf("these include each other: %q", found)
	}
}

// No two C files of the phantom GPU use each other's functions or variables, directly or through other files. A file
// of the fake driver or of the fake NVML uses definitions of its own library first, and then of libphantom.so.
func TestObjectsHaveNoCircle(t *testing.T) {
	ctx := t.Context()
	torch, err := locateTorch(ctx, testkit.Python(t))
	if err != nil {
		t.Fatal(err)
	}
	compilers, err := findCompilers(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if err := os.CopyFS(work, sources); err != nil {
		t.Fatal(err)
	}
	files := sourcesOf(t, ".c")
	library := map[string]string{} // the library of each folder's files
	for _, target := range targets {
		for _, folder := range target.folders {
			library[folder] = target.file
		}
	}
	of := func(file, symbol string) string { return library[path.Dir(path.Join("csrc", file))] + " " + symbol }
	definedBy, wanted := map[string]string{}, map[string][]string{}
	for _, file := range files {
		source := filepath.Join(work, "csrc", file)
		arguments := append(objectFlags(work, torch), "-c", source, "-o", source+".o")
		if err := compilers.c.run(ctx, arguments...); err != nil {
			t.Fatal(err)
		}
		object, err := elf.Open(source + ".o")
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := object.Symbols()
		object.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, symbol := range symbols {
			switch {
			case elf.ST_BIND(symbol.Info) == elf.STB_LOCAL:
			case symbol.Section == elf.SHN_UNDEF:
				wanted[file] = append(wanted[file], symbol.Name)
			default:
				definedBy[of(file, symbol.Name)] = file
			}
		}
	}
	uses := references{}
	count := 0
	for _, file := range files {
		uses[file] = nil
		for _, symbol := range wanted[file] {
			definer := cmp.Or(definedBy[of(file, symbol)], definedBy["libphantom.so "+symbol])
			if definer != "" {
				uses[file] = append(uses[file], definer)
				count++
			}
		}
	}
	if count < 2*len(files) {
		t.Fatalf("%d files use each other %d times", len(files), count)
	}
	if found := uses.circle(); found != nil {
		t.Errorf("these use each other: %q", found)
	}
}
