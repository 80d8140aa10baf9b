package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// The demo where nothing can be recorded is a report on the recorded example: the real script and the real Makefile, in which only
// what builds dpsight is replaced, by the program under test.
func TestDemoThatCannotRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("it draws whole reports: slow under the race detector, which finds nothing there")
	}
	program, err := exec.LookPath("dpsight")
	if err != nil {
		t.Fatal(err)
	}
	build := `[ "$*" = 'build -o dpsight ./cmd/dpsight' ] && cp '` + program + `' dpsight`
	for _, test := range []struct {
		name, says string
		tools      map[string]string // that are not the machine's own
	}{
		{"without Python", "make setup failed, so nothing can be recorded", map[string]string{"go": build, "uname": "echo Linux x86_64"}},
		{"on another platform", "recording needs Linux x86-64", map[string]string{"go": build, "uname": "echo Darwin arm64"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			here, root := checkout(t)
			bin := tools(t, test.tools)
			cmd := exec.Command(filepath.Join(bin, "make"), "demo")
			cmd.Dir, cmd.Env = here, []string{"PATH=" + bin, "HOME=" + t.TempDir()}
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("demo: "+test.says+"; here is the recorded example instead\n")) {
				t.Fatalf("%v\n%s", err, out)
			}
			if !bytes.Contains(out, []byte("\nOverhead over vanilla\n")) || bytes.Contains(out, []byte("Configuration of all runs")) || bytes.Count(out, []byte("\n")) > 60 {
				t.Errorf("it shows more than a newcomer reads, or less:\n%s", out)
			}
			made, err := filepath.Glob(filepath.Join(here, "runs", "*"))
			if err != nil || len(made) != 1 || filepath.Base(made[0]) != "demo-report" {
				t.Fatalf("it left %q, %v", made, err)
			}
			results, err := os.ReadFile(filepath.Join(made[0], "results.json"))
			if err != nil {
				t.Fatal(err)
			}
			runs, err := filepath.Glob(filepath.Join(root, "examples", "headline", "*", schemas.ManifestFile))
			if err != nil || len(runs) == 0 {
				t.Fatalf("%d runs, %v", len(runs), err)
			}
			for _, manifest := range runs {
				if id := filepath.Base(filepath.Dir(manifest)); !bytes.Contains(results, []byte(id)) {
					t.Errorf("the report lacks the run %s", id)
				}
			}
		})
	}
}

// checkout is a folder with what the demo needs of the repository, at root.
func checkout(t *testing.T) (folder, root string) {
	t.Helper()
	folder = t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Makefile", "scripts", "requirements", "examples"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder, root
}

// tools is a folder for PATH with the commands that make and the scripts call: the machine's, and some in shell.
func tools(t *testing.T, own map[string]string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"bash", "sh", "make", "cat", "cut", "sha256sum", "mkdir", "flock", "basename", "dirname", "rm", "touch", "cp"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("the demo calls %s: %v", name, err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, command := range own {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+command+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}
