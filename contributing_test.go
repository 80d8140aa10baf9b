package dpsight_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContributingNamesWhatThereIs holds the errands of CONTRIBUTING.md to the code: each path that it names exists,
// and each test that it runs or names is one.
func TestContributingNamesWhatThereIs(t *testing.T) {
	b, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	paths := 0
	path := regexp.MustCompile("`([a-z_]+(?:/[a-z0-9_.-]+)+|[a-z_]+\\.(?:go|py))`")
	for _, m := range path.FindAllStringSubmatch(text, -1) {
		paths++
		if _, err := os.Stat(m[1]); err != nil && !besideAgent(m[1]) {
			t.Errorf("there is no %s", m[1])
		}
	}
	if paths < 30 {
		t.Errorf("only %d paths are named", paths)
	}
	defined := testNames(t)
	named := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(text, -1)
	for _, name := range named {
		if !defined[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	if len(named) < 6 {
		t.Errorf("only %d tests are named", len(named))
	}
}

// besideAgent reports whether a name belongs to one of the agent's modules.
func besideAgent(name string) bool {
	_, err := os.Stat(filepath.Join("collect", "agent", "python", "dpsight", name))
	return err == nil
}

// testNames are the tests of all packages.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, test := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}

// TestWhatIsLeftOutIsNamed holds scripts/left-out.sh to the tests: what it hands to go test -run are tests that exist,
// and it can name each test that leaves something out.
func TestWhatIsLeftOutIsNamed(t *testing.T) {
	out, err := exec.Command("scripts/left-out.sh", "-run").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defined := testNames(t)
	named := regexp.MustCompile(`Test\w+`).FindAllString(string(out), -1)
	for _, name := range named {
		if !defined[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	if len(named) < 20 {
		t.Errorf("only %d tests are named: %s", len(named), out)
	}
}
