package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/schemas/spool"
)

// dpsight says that a run which a killed collector left needs ingesting, both alone and among other runs. dpsight does
// not say that a run which is still being recorded needs ingesting.
func TestWhatAKilledCollectorLeft(t *testing.T) {
	marks, frames, err := spool.Unpack(filepath.Join(fixture(t, "raw", rawStore), journalID(1), spool.Dir,
		spool.SealedName(0)))
	if err != nil {
		t.Fatal(err)
	}
	dir := liveRun(t, marks, frames)
	alone := "has not been ingested: dpsight ingest " + dir + "\n"
	if r := must(t, "", "runs", dir); !strings.Contains(r.stderr, alone) {
		t.Errorf("runs: %s", r.stderr)
	}
	for _, args := range [][]string{{"report", dir, "-o", "out"}, {"compare", dir}, {"analyze", "breakdown", dir}} {
		if r := dpsight(t, t.TempDir(), args...); r.code != exitUsage || !strings.Contains(r.stderr, alone) {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	const among = "1 of 7 runs have not been ingested, so there is nothing to analyse of them: dpsight ingest "
	if r := must(t, "", "runs", journalStore(t), dir); !strings.Contains(r.stderr, among+dir+"\n") {
		t.Errorf("among others: %s", r.stderr)
	}
	f, err := os.Open(filepath.Join(dir, spool.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, spool.Dir, "*.frames"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	written := time.Now().Add(-30 * time.Minute)
	if err := os.Chtimes(files[0], written, written); err != nil {
		t.Fatal(err)
	}
	farther := regexp.MustCompile(`, since \d{4}-\d\d-\d\d \d\d:\d\d UTC: 6 steps so far, last written 3\dm\d+s ago; ` +
		"dpsight makes its tables when it ends\n")
	r := must(t, "", "runs", dir)
	if strings.Contains(r.stderr, "ingest") || !strings.Contains(r.stdout, "  running  ") ||
		strings.Contains(r.stdout, "did not finish") || !farther.MatchString(r.stderr) {
		t.Errorf("while it is recorded: %s%s", r.stdout, r.stderr)
	}
	for _, args := range [][]string{{"report", dir, "-o", "out"}, {"compare", dir}, {"analyze", "breakdown", dir},
		{"analyze", "findings", dir}} {
		r := dpsight(t, t.TempDir(), args...)
		if r.code == 0 || !farther.MatchString(r.stderr) ||
			strings.Contains(r.stderr, "dpsight ingest") {
			t.Errorf("%v of a running run: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}
