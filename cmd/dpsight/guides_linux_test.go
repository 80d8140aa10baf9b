package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest/ingesttest"
)

// guideBlock matches a block of code in a guide: its indentation in a list, its language, the name of the file that it
// shows, and its lines.
var guideBlock = regexp.MustCompile("(?ms)^( *)```([a-z]+)(?: title=\"([^\"]+)\")?\n(.*?)^ *```$")

// exampleStore matches a store in the repository's examples that a page's commands read.
var exampleStore = regexp.MustCompile(`\bexamples/(?:headline-batch|headline|quick|seq|lora)\b`)

// A reader who follows a guide from its first block to its last gets the output that the guide shows. A block with a
// title is a file. A block in the language diff changes a file. A block in the language console has commands with the
// beginning of their stdout, up to a line with an ellipsis. A block without a title, in a language other than console,
// is not checked.
func TestGuides(t *testing.T) {
	testkit.Rest(t)
	installed, err := filepath.Abs(filepath.Join("..", "..", "collect", "agent", "python"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"COLUMNS": "80", "PYTHONPATH": installed,
		"GIT_AUTHOR_NAME": "reader", "GIT_AUTHOR_EMAIL": "reader@example.org", "GIT_AUTHOR_DATE": "2026-01-05T10:00:00Z",
		"GIT_COMMITTER_NAME": "reader", "GIT_COMMITTER_EMAIL": "reader@example.org",
		"GIT_COMMITTER_DATE": "2026-01-05T10:00:00Z"} {
		t.Setenv(name, value)
	}
	for _, page := range guides(t) {
		t.Run(page, func(t *testing.T) {
			dir, path := t.TempDir(), filepath.Join(docs, page)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			interpreter := python(t)
			if bytes.Contains(text, []byte("from transformers import")) {
				if interpreter = os.Getenv("DPSIGHT_TEST_SCRIPTS_PYTHON"); interpreter == "" {
					t.Skip("SKIPPED: DPSIGHT_TEST_SCRIPTS_PYTHON names no Python with transformers")
				}
			}
			t.Setenv("DPSIGHT_PYTHON", interpreter)
			t.Setenv("PATH", filepath.Dir(interpreter)+":"+os.Getenv("PATH"))
			if err := os.Mkdir(filepath.Join(dir, "examples"), 0o777); err != nil {
				t.Fatal(err)
			}
			for _, example := range slices.Compact(slices.Sorted(slices.Values(exampleStore.FindAllString(string(text), -1)))) {
				if err := os.Symlink(ingesttest.Store(t, filepath.Join("..", "..", example)), filepath.Join(dir,
					example)); err != nil {
					t.Fatal(err)
				}
			}
			fresh := guideBlock.ReplaceAllFunc(text, func(b []byte) []byte {
				m := guideBlock.FindSubmatch(b)
				indent, language, title := string(m[1]), string(m[2]), string(m[3])
				lines := regexp.MustCompile("(?m)^"+indent).ReplaceAllString(string(m[4]), "")
				switch {
				case language == "console":
					text := regexp.MustCompile("(?m)^(.)").ReplaceAllString(followed(t, dir, lines), indent+"$1")
					return []byte(indent + "```console\n" + text + indent + "```")
				case title != "":
					writeTitled(t, filepath.Join(dir, title), language, lines)
				}
				return b
			})
			if *update {
				if err := os.WriteFile(path, fresh, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(fresh, text) {
				t.Errorf("%s does not show what its commands print: go test ./cmd/dpsight -run TestGuides -update, with "+
					"DPSIGHT_TEST_PART=all, writes\n%s", page, fresh)
			}
		})
	}
}

// writeTitled writes a block with a title to the file with that name. If the block's language is diff, it changes the
// existing file's lines instead.
func writeTitled(t *testing.T, path, language, lines string) {
	t.Helper()
	if language == "diff" {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var before, after strings.Builder
		for line := range strings.Lines(lines) {
			if line[0] != '+' {
				before.WriteString(line[1:])
			}
			if line[0] != '-' {
				after.WriteString(line[1:])
			}
		}
		if n := strings.Count(string(text), before.String()); n != 1 {
			t.Fatalf("%s has %d times the lines\n%s", path, n, before.String())
		}
		lines = strings.Replace(string(text), before.String(), after.String(), 1)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
}

// followed runs the commands of a block in dir, and returns the block with their output. If the block shows no output
// below a command, the returned block shows none either.
func followed(t *testing.T, dir, block string) string {
	t.Helper()
	var out strings.Builder
	for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
		lines := strings.SplitAfter(strings.TrimSuffix(part, "\n")+"\n", "\n")
		end := 1
		for strings.HasSuffix(lines[end-1], "\\\n") {
			end++
		}
		command, shown := strings.Join(lines[:end], ""), lines[end:len(lines)-1]
		out.WriteString("$ " + command)
		printed := printedBy(t, dir, command)
		if len(shown) == 0 {
			continue
		}
		if n := len(shown) - 1; shown[n] == "…\n" {
			if len(printed) <= n {
				t.Errorf("%s prints no more than %d lines", command, len(printed))
			}
			printed = append(printed[:min(n, len(printed))], "…\n")
		}
		out.WriteString(strings.Join(printed, ""))
	}
	return out.String()
}

// mayFail matches commands that may exit with an error as their answer, because a check failed or a prediction does
// not fit.
var mayFail = regexp.MustCompile(`^dpsight (?:check|predict) `)

// printedBy returns the lines that a command prints on stdout.
func printedBy(t *testing.T, dir, command string) []string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitFailed && mayFail.MatchString(command)) {
		t.Fatalf("%s: %v\n%s%s", command, err, &stdout, &stderr)
	}
	return slices.Collect(strings.Lines(stdout.String()))
}
