package dpsight_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContributingNamesWhatThereIs compares CONTRIBUTING.md with the code. Each path and each test that CONTRIBUTING.md
// names must exist.
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

// besideAgent reports whether a name is the name of a file in the agent's Python package.
func besideAgent(name string) bool {
	_, err := os.Stat(filepath.Join("collect", "agent", "python", "dpsight", name))
	return err == nil
}

// testNames returns the names of the tests of all packages.
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

// TestWhatIsLeftOutIsNamed runs scripts/left-out.sh -run, which prints the names of tests. Each of these tests must
// exist.
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
