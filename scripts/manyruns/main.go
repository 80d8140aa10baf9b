// Manyruns makes a store of many runs from copies of one run with other ids, names, suites, revisions and times.
// Manyruns measures how long commands take on that store:
//
//	go build -o dpsight ./cmd/dpsight && go run ./scripts/manyruns -n 10000 -dpsight ./dpsight RUN STORE
//
// RUN is the folder of a recorded and ingested run. STORE is a new folder for its copies. Each suite has 50 experiments
// and its own revision. The script changes with every 20th revision. Times of steps and phases differ from run to run
// by up to a hundredth. Manyruns prints, for each command, the median of five wall times and their range, in seconds,
// the median CPU time, and the highest resident memory.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

func main() {
	n := flag.Int("n", 10_000, "how many runs")
	program := flag.String("dpsight", "dpsight", "the program to measure")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: manyruns [-n RUNS] [-dpsight PATH] RUN STORE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *n, *program); err != nil {
		fmt.Fprintln(os.Stderr, "manyruns:", err)
		os.Exit(1)
	}
}

func run(from, store string, n int, program string) error {
	for i := range n {
		if err := copyRun(from, store, i); err != nil {
			return err
		}
	}
	time.Sleep(3 * time.Second) // dpsight's index does not trust files that were written in the last seconds
	baseline := filepath.Join(store, "..", "baseline.json")
	for _, step := range []struct {
		what  string
		times int
		args  []string
	}{
		{"runs, no index", 1, []string{"runs", "--store", store}},
		{"runs", most, []string{"runs", "--store", store}},
		{"compare, nothing kept", 1, []string{"compare", store, "--rows", "method"}},
		{"compare", most, []string{"compare", store, "--rows", "method"}},
		{"compare --value time", most, []string{"compare", store, "--rows", "method", "--value", "time"}},
		{"compare --over revision", most, []string{"compare", store, "--over", "revision"}},
		{"write a baseline", 1, []string{"check", store, "--write-baseline", baseline}},
		{"check", most, []string{"check", store, "--baseline", baseline}},
	} {
		if err := measure(step.what, step.times, program, step.args); err != nil {
			return err
		}
	}
	if err := copyRun(from, store, n); err != nil {
		return err
	}
	out, err := exec.Command(program, "runs", "--store", store).Output()
	fmt.Printf("a run added is seen at once: %t\n", err == nil && strings.Contains(string(out), runID(n)))
	return err
}

const (
	// copies is the number of different names and methods among the runs. A real store has few experiments and many
	// repeats, too.
	copies = 50
	// sameCode is the number of consecutive revisions in which the script does not change.
	sameCode = 20
	// mostLinks is the number of hard links that this program makes to one file. File systems limit this number.
	mostLinks = 30_000
	// most is the number of times that a command is measured.
	most = 5
)

func runID(i int) string { return fmt.Sprintf("20260101T000000Z-run-%06d", i) }

// copyRun copies a run as the i-th run of a store. The copy's tables are hard links.
func copyRun(from, store string, i int) error {
	dir := filepath.Join(store, runID(i))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".parquet") || e.Name() == schemas.IngestReportFile {
			if err := linked(from, store, dir, e.Name(), i); err != nil {
				return err
			}
		}
	}
	m, err := schemas.ReadManifest(from)
	if err != nil {
		return err
	}
	was, suite := m.RunID, i/copies
	m.RunID, m.Name = runID(i), fmt.Sprintf("%s-%d", m.Name, i%copies)
	m.Start = m.Start.Add(time.Duration(i) * time.Minute)
	m.Params["method"] = fmt.Sprint("method-", i%copies)
	m.Suite = &schemas.SuiteRef{ID: fmt.Sprintf("20260101T000000Z-suite-%05d", suite), Name: "nightly",
		Key: fmt.Sprintf("%064d", i%copies)}
	committed := m.Start.Add(-time.Hour)
	m.Git = &schemas.Git{Revision: fmt.Sprintf("%08x%032x", suite+1, 0), Committed: &committed}
	m.Code = codeOf(suite / sameCode)
	if err := schemas.WriteManifest(dir, m); err != nil {
		return err
	}
	var s schemas.Summary
	if err := schemas.ReadDocument(filepath.Join(from, schemas.SummaryFile), schemas.SummarySchema, &s); err != nil {
		return err
	}
	s.RunID = m.RunID
	if s.Manifest, s.Report, err = schemas.SummaryDigests(dir); err != nil {
		return err
	}
	for _, part := range []*json.RawMessage{&s.Row, &s.Compared} {
		if *part, err = renamed(*part, was, m, i); err != nil {
			return err
		}
	}
	if s.Origin, err = ofCode(s.Origin, m.Code); err != nil {
		return err
	}
	return schemas.WriteSummary(dir, &s)
}

// linked makes a hard link to a file of an earlier copy, as a file of the i-th run.
func linked(from, store, dir, name string, i int) error {
	of := from
	if n := i / mostLinks * mostLinks; n > 0 {
		of = filepath.Join(store, runID(n))
		if i == n {
			b, err := os.ReadFile(filepath.Join(from, name))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
	}
	return os.Link(filepath.Join(of, name), filepath.Join(dir, name))
}

// renamed returns a copy of a part of a run's summary, with the identity from the manifest m and with changed times.
func renamed(part []byte, was string, m *schemas.Manifest, i int) (json.RawMessage, error) {
	text := strings.ReplaceAll(string(part), was, m.RunID)
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return nil, err
	}
	of := fields
	if inner, ok := fields["run"].(map[string]any); ok {
		of = inner
		fields["suite_id"], fields["key"] = m.Suite.ID, m.Suite.Key
	}
	of["name"], of["params"] = m.Name, m.Params
	fields["started"], fields["suite"] = m.Start, m.Suite.Name
	if rest, ok := fields["rest"].(map[string]any); ok {
		rest["git"] = m.Git
	}
	jitter(fields, rand.New(rand.NewPCG(31, uint64(i))))
	return json.Marshal(fields)
}

// jitter changes each time in the fields by at most a hundredth.
func jitter(fields map[string]any, rnd *rand.Rand) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[name].(type) {
		case float64:
			if name == "median" || strings.HasSuffix(name, "_ms") {
				fields[name] = v * (1 + (rnd.Float64()-0.5)/50)
			}
		case map[string]any:
			jitter(v, rnd)
		case []any:
			for _, e := range v {
				if inner, ok := e.(map[string]any); ok {
					jitter(inner, rnd)
				}
			}
		}
	}
}

// codeOf returns the n-th version of the runs' script.
func codeOf(n int) *schemas.Code {
	sum := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, n)))
	digest := "sha256:" + sum[:16]
	return &schemas.Code{Digest: &digest,
		Files: []schemas.CodeFile{{Module: schemas.MainModule, File: "train.py", SHA256: &sum}}}
}

// ofCode returns a copy of a run's origin with another code.
func ofCode(origin []byte, code *schemas.Code) (json.RawMessage, error) {
	var fields map[string]any
	if err := json.Unmarshal(origin, &fields); err != nil {
		return nil, err
	}
	fields["code"] = code
	return json.Marshal(fields)
}

// measure runs a command several times. measure prints the command's times and its memory.
func measure(what string, times int, program string, args []string) error {
	var wall, processor []float64
	var memory string
	for range times {
		cmd := exec.Command(program, args...)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(began)
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
			return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
		}
		s := cmd.ProcessState
		wall = append(wall, took.Seconds())
		processor = append(processor, (s.UserTime() + s.SystemTime()).Seconds())
		memory = resident(s)
	}
	slices.Sort(wall)
	slices.Sort(processor)
	fmt.Printf("%-24s %6.2f s (%.2f to %.2f), %6.2f s of CPU, %s\n", what, wall[times/2], wall[0], wall[times-1],
		processor[times/2], memory)
	return nil
}
