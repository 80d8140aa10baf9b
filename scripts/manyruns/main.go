// Manyruns makes a store of many runs, by copying one with other ids, names and times, and measures what commands over
// it take:
//
//	go build -o dpsight ./cmd/dpsight && go run ./scripts/manyruns -n 10000 -dpsight ./dpsight RUN STORE
//
// RUN is the folder of a recorded run that has been ingested and whose repeats are to fill the new folder STORE. Times
// are wall time and CPU time, memory is the most that was resident.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	time.Sleep(3 * time.Second) // an index does not rest on files that were written just now
	baseline := filepath.Join(store, "..", "baseline.json")
	for _, step := range []struct {
		what string
		args []string
	}{
		{"runs, no index", []string{"runs", "--store", store}},
		{"runs", []string{"runs", "--store", store}},
		{"compare, nothing kept", []string{"compare", store, "--rows", "method"}},
		{"compare", []string{"compare", store, "--rows", "method"}},
		{"compare --over date", []string{"compare", store, "--over", "date"}},
		{"write a baseline", []string{"check", store, "--write-baseline", baseline}},
		{"check", []string{"check", store, "--baseline", baseline}},
	} {
		if err := measure(step.what, program, step.args); err != nil {
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

// copies are by how many names and methods the runs differ: a store has few experiments and many repeats.
const copies = 50

func runID(i int) string { return fmt.Sprintf("20260101T000000Z-run-%06d", i) }

// copyRun copies a run as the i-th of a store. Its tables are links to those of the first.
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
			if err := os.Link(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	m, err := schemas.ReadManifest(from)
	if err != nil {
		return err
	}
	was := m.RunID
	m.RunID, m.Name = runID(i), fmt.Sprintf("%s-%d", m.Name, i%copies)
	m.Start = m.Start.Add(time.Duration(i) * time.Minute)
	m.Params["method"] = fmt.Sprint("method-", i%copies)
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
		if *part, err = renamed(*part, was, m); err != nil {
			return err
		}
	}
	return schemas.WriteSummary(dir, &s)
}

// renamed is a part of a summary with what the manifest says of the run.
func renamed(part []byte, was string, m *schemas.Manifest) (json.RawMessage, error) {
	text := strings.ReplaceAll(string(part), was, m.RunID)
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return nil, err
	}
	of := fields
	if inner, ok := fields["run"].(map[string]any); ok {
		of = inner
	}
	of["name"], of["params"] = m.Name, m.Params
	fields["started"] = m.Start
	return json.Marshal(fields)
}

func measure(what, program string, args []string) error {
	cmd := exec.Command(program, args...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	s := cmd.ProcessState
	fmt.Printf("%-24s %6.2f s, %6.2f s of CPU, %s\n", what, took.Seconds(), (s.UserTime() + s.SystemTime()).Seconds(),
		resident(s))
	return nil
}
