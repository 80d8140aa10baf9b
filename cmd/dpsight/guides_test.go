package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// guides returns the English pages of the tutorial and of the how-to guides, by their paths below docs.
func guides(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, folder := range []string{"tutorial", "how-to"} {
		pages, err := filepath.Glob(filepath.Join(docs, folder, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			out = append(out, filepath.Join(folder, filepath.Base(page)))
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no guides")
	}
	return out
}

// docs is the folder of the documentation.
var docs = filepath.Join("..", "..", "docs")

// Each guide has a Chinese version with the same code and output. Only comments in the code may differ.
func TestGuidesAreAlike(t *testing.T) {
	comments := regexp.MustCompile(`(?m)(^| +)# .*$`)
	code := regexp.MustCompile("(?s)```.*?```")
	for _, page := range guides(t) {
		english, err := os.ReadFile(filepath.Join(docs, page))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(docs, "zh", page)
		chinese, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%s has no Chinese page: %v", page, err)
			continue
		}
		a, b := code.FindAll(english, -1), code.FindAll(chinese, -1)
		if len(a) != len(b) {
			t.Errorf("%s has %d blocks of code, %s %d", page, len(a), path, len(b))
			continue
		}
		for i := range a {
			if bytes.Equal(comments.ReplaceAll(a[i], nil), comments.ReplaceAll(b[i], nil)) {
				continue
			}
			if !*update {
				t.Errorf("%s shows\n%s\nand %s\n%s\n(go test ./cmd/dpsight -run TestGuidesAreAlike -update writes it)", page,
					a[i], path, b[i])
			}
			chinese = bytes.Replace(chinese, b[i], a[i], 1)
		}
		if *update {
			if err := os.WriteFile(path, chinese, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
