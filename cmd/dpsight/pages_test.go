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

var update = flag.Bool("update", false, "rewrite what the documentation shows")

// pages are the documents that show what dpsight prints and draws.
var pages = []string{"README.md", "docs/gallery.md", "docs/claims.md"}

var (
	// block is a command in a comment, and what the page shows as its output.
	block = regexp.MustCompile(`(?s)<!-- dpsight (.*?) -->\n(.*?)<!-- end -->`)
	// drawing is a report's command in a comment, the figure of that report, and the picture's link below it.
	drawing = regexp.MustCompile(`<!-- figure (\S+) of: dpsight report (.*?) -->\n!\[[^\]]*\]\((\S+?)\)`)
)

// The tables and pictures of the documentation are what the commands beside them print and draw.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("it draws every picture on one goroutine: slow under the race detector, which finds nothing there")
	}
	t.Chdir("../..")
	reports := map[string]string{} // folder by command
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fresh := block.ReplaceAllFunc(text, func(b []byte) []byte {
			command := string(block.FindSubmatch(b)[1])
			return []byte("<!-- dpsight " + command + " -->\n" + printed(t, strings.Fields(command)) + "\n<!-- end -->")
		})
		figures := drawing.FindAllSubmatch(text, -1)
		if len(block.FindAll(text, -1)) == 0 {
			t.Errorf("%s shows no command's output", page)
		}
		if *update {
			if err := os.WriteFile(page, fresh, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if !bytes.Equal(fresh, text) {
			t.Errorf("%s shows other output than its commands print: go test ./cmd/dpsight -run TestReadme -update", page)
		}
		for _, f := range figures {
			name, command, link := string(f[1]), string(f[2]), filepath.Join(filepath.Dir(page), string(f[3]))
			if reports[command] == "" {
				reports[command] = t.TempDir()
				printed(t, append(strings.Fields("report "+command), "-o", reports[command]))
			}
			drawn, err := os.ReadFile(filepath.Join(reports[command], name))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(link, drawn, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if shown, err := os.ReadFile(link); err != nil || !bytes.Equal(shown, drawn) {
				t.Errorf("%s is not what report draws: go test ./cmd/dpsight -run TestReadme -update (%v)", link, err)
			}
		}
	}
}

// printed is what a command prints on stdout; it has to end well.
func printed(t *testing.T, args []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(args, &out, &errs); code != exitDone {
		t.Fatalf("dpsight %s: exit %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}
