package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dpsight/dpsight/schemas"
)

// TestScripts runs testdata/script. Besides testscript's own commands there are:
//
//	fails CODE ARG…          dpsight ARG… exits with CODE, says why in one sentence, and changes no file
//	fails -prints CODE ARG…  the same, with something on stdout
//	bytes FILE TEXT          write TEXT, in which \x80 and the like stand for bytes
//	truncate FILE SIZE       cut a file short
//	copytree FROM TO         copy a folder
//	otherrules RUN VERSION [FROM TO]
//	                         make a run one that rules of another version made, which took a category for another one
//
// and the fixtures $JOURNALS (ingested), $RAW (not ingested), $SNAPSHOTS, $FIGURES (files), $EXAMPLE (measured),
// with run ids in $vanilla, $dpsgd, …
func TestScripts(t *testing.T) {
	journals := journalStore(t)
	raw := fixture(t, "raw", rawStore)
	snaps, err := filepath.Abs(snapshots)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := filepath.Abs("../../ingest/figures/testdata")
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs("../../examples/headline")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			for i, r := range recorded {
				e.Setenv(r.name, journalID(i))
			}
			e.Setenv("JOURNALS", journals)
			e.Setenv("RAW", raw)
			e.Setenv("SNAPSHOTS", snaps)
			e.Setenv("FIGURES", figures)
			e.Setenv("EXAMPLE", example)
			e.Setenv("TORCHPYTHON", os.Getenv("DPSIGHT_TEST_PYTHON"))
			// The test scripts must not find the settings or the compiled files of the machine's user.
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			if err := os.MkdirAll(filepath.Join(e.WorkDir, "cache", "dpsight"), 0o755); err != nil {
				return err
			}
			// Only the compiled phantom GPU is shared, so that not every test script compiles it.
			if cache, err := os.UserCacheDir(); err == nil {
				compiled := filepath.Join(cache, "dpsight", "phantom")
				if err := errors.Join(os.MkdirAll(compiled, 0o755),
					os.Symlink(compiled, filepath.Join(e.WorkDir, "cache", "dpsight", "phantom"))); err != nil {
					return err
				}
			}
			return os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o755)
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails": fails, "bytes": writeBytes, "truncate": truncate, "copytree": copyTree, "otherrules": otherRules,
		},
	})
}

func condition(name string) (bool, error) {
	switch name {
	case "torch":
		return os.Getenv("DPSIGHT_TEST_PYTHON") != "", nil
	case "python3":
		_, err := exec.LookPath("python3")
		return err == nil, nil
	case "gpu":
		files, _ := filepath.Glob("/dev/nvidia[0-9]*")
		return len(files) > 0, nil
	case "devfull":
		_, err := os.Stat("/dev/full")
		return err == nil, nil
	case "records": // a platform on which experiments are recorded
		return runtime.GOOS == "linux", nil
	}
	return false, fmt.Errorf("unknown condition %s", name)
}

var (
	sentence = regexp.MustCompile(`^dpsight: error: [a-z0-9"$/.-].*[^.\s]$`)
	// hintInside matches error messages that need no hint below them, since they end with the command that helps.
	hintInside = regexp.MustCompile(`has not been ingested: dpsight ingest \S+$`)
	unseemly   = regexp.MustCompile(`(?m)^(panic:|goroutine \d|Usage:|fatal error:)|%!|<nil>`)
)

// fails runs dpsight and checks what all errors have in common: exit code, one sentence, a hint, and no changed file.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	prints := len(args) > 0 && args[0] == "-prints"
	if prints {
		args = args[1:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails [-prints] CODE ARG…")
	}
	root := ts.Getenv("WORK")
	before := tree(ts, root)
	err := ts.Exec("dpsight", args[1:]...)
	var exit *exec.ExitError
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	if want, _ := strconv.Atoi(args[0]); code != want {
		ts.Fatalf("exit code %d, not %s\n%s", code, args[0], stderr)
	}
	if (stdout != "") != prints {
		ts.Fatalf("stdout: %q", stdout)
	}
	var said, hints []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "dpsight: error:"):
			said = append(said, line)
		case strings.HasPrefix(line, "dpsight: hint:"):
			hints = append(hints, line)
		}
	}
	if len(said) == 1 && len(hints) == 0 && !hintInside.MatchString(said[0]) {
		ts.Fatalf("no hint:\n%s", stderr)
	}
	if len(said) != 1 || !sentence.MatchString(said[0]) || len(hints) > 1 || unseemly.MatchString(stderr) {
		ts.Fatalf("not one clear sentence:\n%s", stderr)
	}
	if last := strings.TrimRight(stderr, "\n"); !strings.HasSuffix(last, append(said, hints...)[len(hints)]) {
		ts.Fatalf("the error is not the last word:\n%s", stderr)
	}
	after := tree(ts, root)
	for path, sum := range after {
		if was, ok := before[path]; !ok {
			ts.Fatalf("%s was left behind", path)
		} else if was != sum {
			ts.Fatalf("%s was changed", path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			ts.Fatalf("%s was lost", path)
		}
	}
}

// tree returns every file and folder below a folder. For a file it has a hash of the content.
func tree(ts *testscript.TestScript, root string) map[string]string {
	out := map[string]string{}
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, schemas.PartialSuffix):
			return fmt.Errorf("%s is half written", path)
		case path == filepath.Join(root, "cache"): // the cache of compiled code stays
			return fs.SkipDir
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		default:
			out[path] = d.Type().String()
		}
		return nil
	}))
	return out
}

func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes FILE TEXT")
	}
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate FILE SIZE")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	if b := []byte(ts.ReadFile(args[0])); int64(len(b)) <= n {
		ts.Fatalf("%s has only %d bytes", args[0], len(b))
	}
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

func copyTree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: copytree FROM TO")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// dpsight refuses a truncated Parquet table, names it, and hints at the command that makes it again. If a bit in a
// table's pages is wrong, dpsight refuses the table too or prints the same numbers as before.
func TestDamagedTables(t *testing.T) {
	store := journalStore(t)
	want := must(t, "", "analyze", "breakdown", filepath.Join(store, journalID(1)), "--format", "json").stdout
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(store, journalID(1)))); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, name := range []string{"allocations", "owners", "reserved", "phases"} {
		path := filepath.Join(dir, name+".parquet")
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, b []byte) {
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			code := run([]string{"analyze", "breakdown", dir, "--format", "json"}, &stdout, &stderr)
			switch {
			case code == exitDone && stdout.String() == want && len(b) == len(whole):
			case code == exitUsage && stdout.Len() == 0 && strings.Contains(stderr.String(), name+".parquet") &&
				strings.Contains(stderr.String(), "dpsight: hint: dpsight ingest --again"):
				refused++
			default:
				t.Errorf("%s %s: exit code %d\n%s", name, what, code, stderr.String())
			}
		}
		for i := range 12 {
			check(fmt.Sprintf("cut at %d/12", i), whole[:len(whole)*i/12])
		}
		for i := range 8 {
			flipped := bytes.Clone(whole)
			flipped[4+len(whole)*i/16] ^= 0x10
			check(fmt.Sprintf("with a bit flipped at %d/16", i), flipped)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if refused < 48+8 { // a wrong bit in a column that the analysis does not read is harmless
		t.Errorf("only %d of 48 files that were cut, and 32 with a wrong bit, were refused", refused)
	}
}

func otherRules(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 && len(args) != 4 {
		ts.Fatalf("usage: otherrules RUN VERSION [FROM TO]")
	}
	version, err := strconv.Atoi(args[1])
	ts.Check(err)
	from, to := "", ""
	if len(args) == 4 {
		from, to = args[2], args[3]
	}
	ts.Check(madeByOtherRules(ts.MkAbs(args[0]), version, from, to))
}

// madeByOtherRules changes the run in dir as if another version of the categories' rules had made its tables: owners
// of category from get the category to.
func madeByOtherRules(dir string, version int, from, to string) error {
	report, err := schemas.ReadIngestReport(dir)
	if err != nil {
		return err
	}
	owners, err := schemas.Owners.Read(dir)
	if err != nil {
		return err
	}
	for i := range owners {
		if owners[i].Category == from {
			owners[i].Category = to
		}
	}
	if err := schemas.Owners.Write(dir, owners); err != nil {
		return err
	}
	digests, err := schemas.TableDigests(dir, schemas.Owners.File())
	if err != nil {
		return err
	}
	maps.Copy(report.Tables, digests)
	report.Rules = version
	return schemas.WriteFile(filepath.Join(dir, schemas.IngestReportFile), report.Encode)
}
