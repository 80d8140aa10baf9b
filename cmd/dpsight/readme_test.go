package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the README shows")

// block is a command in a comment, and what the README shows as its output.
var block = regexp.MustCompile(`(?s)<!-- dpsight (.*?) -->\n(.*?)<!-- end -->`)

const picture = "docs/memory_breakdown_comparison.png"

// The README's tables and its picture are what its commands print.
func TestReadme(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	fresh := block.ReplaceAllFunc(readme, func(b []byte) []byte {
		n++
		command := string(block.FindSubmatch(b)[1])
		var out, errs bytes.Buffer
		if code := run(strings.Fields(command), &out, &errs); code != exitDone {
			t.Fatalf("dpsight %s: exit %d: %s", command, code, errs.String())
		}
		return []byte("<!-- dpsight " + command + " -->\n" + out.String() + "\n<!-- end -->")
	})
	if n < 3 {
		t.Fatalf("the README has %d commands with output", n)
	}
	dir := t.TempDir()
	var out, errs bytes.Buffer
	if code := run([]string{"report", "vanilla", "dpsgd", "ghost", "--store", "examples/headline", "-o", dir}, &out, &errs); code != exitDone {
		t.Fatalf("report: exit %d: %s", code, errs.String())
	}
	drawn, err := os.ReadFile(filepath.Join(dir, filepath.Base(picture)))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("README.md", fresh, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(picture, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(fresh, readme) {
		t.Error("README.md shows other output than its commands print: go test ./cmd/dpsight -run TestReadme -update")
	}
	shown, err := os.ReadFile(picture)
	if err != nil || !bytes.Equal(shown, drawn) {
		t.Errorf("%s is not what report draws: go test ./cmd/dpsight -run TestReadme -update (%v)", picture, err)
	}
}
