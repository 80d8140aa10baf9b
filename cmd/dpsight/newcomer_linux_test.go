package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// For each typical mistake of a new user that is listed here, dpsight says what to do.
func TestMistakesOfANewcomer(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	dir := t.TempDir()
	for store, example := range map[string]string{"runs": "quick", "batch": "headline-batch"} {
		path, err := filepath.Abs(filepath.Join("..", "..", "examples", example))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, store)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"train.py": "print(1)\n",
		"bin/python": "#!/bin/sh\nexec python3 -I -S \"$@\"\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("a Python is needed: ", err)
	}
	version := regexp.MustCompile(`Python\s+3[0-9.]+`)
	for _, test := range []struct{ name, line, says string }{
		{"forgotten command", "python train.py --epochs 1", `dpsight: error: python is no command of dpsight
dpsight: hint: dpsight collect python train.py --epochs 1 records the script;
  dpsight --help lists the commands`},
		{"forgotten interpreter", "train.py", `dpsight: error: train.py is no command of dpsight
dpsight: hint: dpsight collect python train.py records the script; dpsight
  --help lists the commands`},
		{"options before the script", "collect --epochs 1 python train.py", `dpsight: error: unknown flag --epochs
dpsight: hint: dpsight collect --help lists the options; a script's own options
  go behind it, as in: dpsight collect python train.py --epochs 1`},
		{"script without its interpreter", "collect --device phantom train.py",
			`dpsight: device: phantom GPU, predicting the memory of the NVIDIA H200
dpsight: error: train.py: no such command
dpsight: hint: write the interpreter before the script, as in: python train.py`},
		{"unknown device", "collect --device gpu python train.py", `dpsight: error: unknown device "gpu"
dpsight: hint: did you mean --device cuda? known: auto, cuda, phantom,
  phantom:PROFILE`},
		{"misspelt device to predict", "predict --device h201 python train.py", `dpsight: error: unknown device "h201"
dpsight: hint: did you mean --device h200? known: a100-40, a100-80, h100, h200,
  l40s, rtx-4090, t4. For any other device, give its memory, as in --gpu-memory
  24GiB`},
		{"device of two sizes", "predict --device A100 python train.py", `dpsight: error: unknown device "A100"
dpsight: hint: did you mean --device a100-40 or a100-80? known: a100-40,
  a100-80, h100, h200, l40s, rtx-4090, t4. For any other device, give its
  memory, as in --gpu-memory 24GiB`},
		{"negative steps", "predict --steps -3 python train.py",
			`dpsight: error: --steps must be a number of steps, auto or all, not "-3"
dpsight: hint: --steps 5 ends the script after five; --steps all lets it run to
  its end`},
		{"negative number", "explain --top -1", `dpsight: error: --top -1: must be 0 or more
dpsight: hint: as in --top 8; 0 lists all modules`},
		{"option behind the script", "predict python train.py --epochs 1 --device t4",
			`dpsight: note: --device t4 went to train.py, like all that stands behind a
  script; dpsight's own options go before python
dpsight: device: phantom GPU, predicting the memory of the NVIDIA H200
dpsight: error: DIR/bin/python (Python 3) has no torch
dpsight: hint: pip install torch (2.10 or later, a CUDA build), or give the path
  of an interpreter with torch instead of python; dpsight doctor shows the one
  that make setup created`},
		{"help of nothing", "help nosuch", `dpsight: error: unexpected argument nosuch
dpsight: hint: dpsight --help lists the commands`},
		{"misspelt command", "colect python train.py", `dpsight: error: unexpected argument colect, did you mean "collect"?
dpsight: hint: dpsight --help lists the commands`},
		{"misspelt analysis", "brekdown", `dpsight: error: unexpected argument brekdown
dpsight: hint: did you mean dpsight breakdown? dpsight --help lists the commands`},
		{"misspelt run", "breakdown vanila", `dpsight: error: no run "vanila" in runs: did you mean vanilla, vanilla-mlp?
dpsight: hint: dpsight runs --store runs lists its runs; another store is named
  by its folder`},
		{"misspelt suite", "breakdown qiuck", `dpsight: error: no run "qiuck" in runs: did you mean quick?
dpsight: hint: dpsight runs --store runs lists its runs; another store is named
  by its folder`},
		{"misspelt built-in suite", "collect --suite qiuck", `dpsight: error: no suite qiuck
dpsight: hint: did you mean quick? give a file, or one of the built-in suites:
  headline, headline-batch, quick, seq, trainers`},
		{"misspelt flag", "breakdown --formt json", `dpsight: error: unknown flag --formt, did you mean "--format"?
dpsight: hint: dpsight breakdown --help lists the options`},
		{"no torch", "collect --device phantom python train.py",
			`dpsight: device: phantom GPU, predicting the memory of the NVIDIA H200
dpsight: error: DIR/bin/python (Python 3) has no torch
dpsight: hint: pip install torch (2.10 or later, a CUDA build), or give the path
  of an interpreter with torch instead of python; dpsight doctor shows the one
  that make setup created`},
		{"two runs of one name", "explain bk bk --store batch",
			`dpsight: 5 runs are called bk: taking the newest that is not bare,
  20261121T204143Z-bk-007bcb
dpsight: error: bk and bk are the same run, 20261121T204143Z-bk-007bcb
dpsight: hint: a run that shares its name with others is named by its id;
  dpsight runs lists the runs`},
		{"empty store", "breakdown --store empty", `dpsight: error: no runs in empty
dpsight: hint: record one, as in dpsight collect python train.py, or name
  another store with --store`},
		{"no store", "runs --store nowhere", `dpsight: error: no runs in nowhere: there is no such folder
dpsight: hint: record one, as in dpsight collect python train.py, or name
  another store with --store`},
		{"wrong path", "breakdown ./out/runs", `dpsight: error: ./out/runs: there is no such folder
dpsight: hint: dpsight runs --store runs lists its runs; another store is named
  by its folder`},
		{"misspelt script", "collect --device phantom python trian.py",
			`dpsight: device: phantom GPU, predicting the memory of the NVIDIA H200
dpsight: error: trian.py: no such script
dpsight: hint: did you mean train.py? dpsight looked in DIR`},
		{"file that is not there", "ingest snapshot.pickle", `dpsight: error: snapshot.pickle: there is no such file or folder
dpsight: hint: ingest accepts run folders, stores, torch's memory snapshots and
  result files of other tools. Refused inputs left no files`},
		{"no unit", "predict --gpu-memory 24 python train.py",
			`dpsight: error: --gpu-memory: size "24" is out of range: give 1MiB to 2TiB
dpsight: hint: the size has no unit: did you mean 24GiB?`},
		{"wrong unit", "predict --gpu-memory 24gigs python train.py",
			`dpsight: error: --gpu-memory: size "24gigs" is not a number of B, KiB, MiB or
  GiB
dpsight: hint: as in 24GiB`},
		{"duration without a unit", "collect --timeout 10 python train.py",
			`dpsight: error: --timeout: expected duration but got "10": time: missing unit in
  duration "10"
dpsight: hint: a duration has a unit, as in 90s or 10m`},
		{"missing flag", "report vanilla", `dpsight: error: missing flags: --out=DIR or --html=FILE
dpsight: hint: as in: dpsight report --out=DIR`},
		{"nothing to run", "collect", `dpsight: error: nothing to run
dpsight: hint: give a command, a --method, or a --suite; dpsight collect --help
  has examples`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := dpsight(t, dir, strings.Fields(test.line)...)
			fits80(t, "stderr", r.stderr)
			said := version.ReplaceAllString(strings.ReplaceAll(r.stderr, dir, "DIR"), "Python 3")
			// Line breaks depend on the length of the folder's path.
			unbroken := func(text string) string { return strings.ReplaceAll(text, "\n  ", " ") }
			if got := strings.TrimRight(said, "\n"); r.code != exitUsage || unbroken(got) != unbroken(test.says) {
				t.Errorf("exit code %d\n%s\nwant\n%s", r.code, got, test.says)
			}
		})
	}
}

// dpsight help COMMAND prints the same as dpsight COMMAND --help.
func TestHelpIsACommandToo(t *testing.T) {
	for _, line := range []string{"", "predict", "analyze", "analyze breakdown", "breakdown"} {
		args := strings.Fields(line)
		asked, given := must(t, "", append([]string{"help"}, args...)...), must(t, "", append(args, "--help")...)
		if asked != given || !strings.HasPrefix(asked.stdout, "Usage: dpsight") {
			t.Errorf("help %s prints\n%s%s", line, asked.stdout, asked.stderr)
		}
	}
}
