package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// codeBlock is a block of code of a page: its language, and its lines.
var codeBlock = regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```")

func readmes(t *testing.T) (english, chinese string) {
	t.Helper()
	var texts []string
	for _, name := range []string{"README.md", "README.zh.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 150 {
			t.Errorf("%s has %d lines, over 150", name, n)
		}
		texts = append(texts, string(text))
	}
	return texts[0], texts[1]
}

// README.md and README.zh.md show the same code and output. The links of both files to pages and pictures below docs
// are the same, except that README.zh.md may link to a Chinese version.
func TestReadmesAreAlike(t *testing.T) {
	english, chinese := readmes(t)
	comments := regexp.MustCompile(`(?m) +# .*$`)
	link := regexp.MustCompile(`\]\((docs/[^)]+)\)`)
	in := func(text string) string {
		var all strings.Builder
		for _, m := range codeBlock.FindAllStringSubmatch(text, -1) {
			all.WriteString(comments.ReplaceAllString(m[2], ""))
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			all.WriteString(strings.Replace(m[1], "docs/zh/", "docs/", 1) + "\n")
		}
		return all.String()
	}
	if a, b := in(english), in(chinese); a != b {
		t.Errorf("README.md has\n%s\nREADME.zh.md\n%s", a, b)
	}
}

// The commands of README.md print the output that it shows. The test predicts the script in README.md's Python block
// as written. The baseline comes from that script without the leaking line.
func TestReadmeCommands(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	english, _ := readmes(t)
	var script string
	shown := map[string]string{} // output by command
	for _, m := range codeBlock.FindAllStringSubmatch(english, -1) {
		if m[1] == "python" {
			script = m[2]
		}
		if command, output, ok := strings.Cut(m[2], "\n"); ok && strings.HasPrefix(command, "$ dpsight ") {
			shown[strings.TrimPrefix(command, "$ dpsight ")] = output
		}
	}
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if script == "" || len(shown) != 3 {
		t.Fatalf("README has a script of %d bytes and %d commands with output", len(script), len(shown))
	}
	leak := "    outputs.append(output)\n"
	if !strings.Contains(script, leak) {
		t.Fatal("README's script does not leak")
	}
	write(strings.Replace(script, leak, "", 1))
	must(t, dir, "predict", "--", interpreter, "train.py")
	must(t, dir, "check", "--write-baseline", "baseline.json")
	write(script)
	must(t, dir, "predict", "--", interpreter, "train.py")
	t.Setenv("COLUMNS", "80")
	for _, command := range []string{"check --baseline baseline.json", "breakdown --by line",
		"predict --device rtx-4090 -- python train.py"} {
		want, ok := shown[command]
		if !ok {
			t.Errorf("README does not show what dpsight %s prints", command)
			continue
		}
		r := dpsight(t, dir, strings.Fields(strings.ReplaceAll(command, "python", interpreter))...)
		for line := range strings.Lines(want) {
			if strings.TrimSpace(line) != "…" && !strings.Contains(r.stdout, line) {
				t.Errorf("dpsight %s does not print %q:\n%s", command, line, r.stdout)
			}
		}
	}
	picture, err := os.ReadFile(filepath.Join("..", "..", "docs", "terminal.svg"))
	if err != nil {
		t.Fatal(err)
	}
	r := must(t, dir, "collect", "--device", "phantom", "--", interpreter, "train.py")
	text := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(string(picture))
	said, _, _ := strings.Cut(r.stdout, "   more ") // the rest has the run's id
	for line := range strings.Lines(said) {
		if line = strings.TrimSuffix(line, "\n"); !strings.Contains(text, line) {
			t.Errorf("docs/terminal.svg lacks %q", line)
		}
	}
}
