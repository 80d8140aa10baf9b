package collect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// writeJournal writes a journal as a running script has it, with this number of steps and the given frames.
func writeJournal(t *testing.T, dir, name string, steps int, frames []byte) string {
	t.Helper()
	b := spool.AppendMarksHeader(nil, spool.MarksHeader{PID: 4711, StartNS: 1})
	k := uint32(0)
	flagged := func(kind spool.Kind, flags uint8, a uint64) {
		k++
		b = spool.Mark{K: k, Kind: kind, Flags: flags, TimeNS: int64(k), A: a}.Append(b)
	}
	mark := func(kind spool.Kind, a uint64) { flagged(kind, 0, a) }
	mark(spool.Start, 0)
	for i := range steps {
		mark(spool.ForwardBegin, 1)
		b = append(b, make([]byte, spool.RecordSize)...) // a record that was never finished
		k++
		if i%2 == 1 { // this step has no phases, and its update's flag ends it
			flagged(spool.Updated, spool.FlagEnds, 1)
			continue
		}
		mark(spool.Updated, 1)
		mark(spool.StepEnd, uint64(i))
	}
	b = append(b, make([]byte, 100*spool.RecordSize)...) // the agent allocates the file's space ahead of use
	path := filepath.Join(dir, name+".marks")
	os.MkdirAll(dir, 0o755)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".frames"), append(spool.AppendHeader(nil), frames...),
		0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMaskJournals(t *testing.T) {
	const secret = "planted-secret-123"
	dir := t.TempDir()
	pickle := []byte("\x80\x04\x8c\x08filename\x8c\x12" + secret + "\x94.")
	tag := spool.Tag{K: 1, Kind: spool.TagParameter, Address: 77, Bytes: 5}.Append(nil)
	var frames []byte
	frames = spool.AppendFrame(frames, spool.FrameException, []byte(`{"type":"E","message":"bad `+secret+
		`","oom":true}`))
	frames = spool.AppendFrame(frames, spool.FrameAllocator, pickle)
	frames = spool.AppendFrame(frames, spool.FrameTags, tag)
	torn := spool.AppendFrame(nil, spool.FrameConfig, []byte(`{"x":"`+secret+`"}`))
	frames = append(frames, torn[:len(torn)-1]...)
	marks := writeJournal(t, dir, "1-1", 2, frames)
	if err := maskJournals(dir, mask.Gather(nil, []string{"X_TOKEN=" + secret}, nil)); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(strings.Replace(marks, ".marks", ".frames", 1))
	if bytes.Contains(b, []byte(secret)) {
		t.Error("the secret is still there")
	}
	j, err := spool.OpenLive(marks)
	if err != nil || len(j.Damaged) > 0 || j.Torn == nil || j.Frames != 3 {
		t.Fatalf("%+v, %v", j, err)
	}
	if j.Exception.Message != "bad ***" ||
		!bytes.Equal(j.Chunks[0].Pickle, []byte("\x80\x04\x8c\x08filename\x8c\x12"+strings.Repeat("*", len(secret))+
			"\x94.")) || len(j.Tags) != 1 || j.Tags[0].Address != 77 {
		t.Errorf("exception %+v, pickle %q, tags %v", j.Exception, j.Chunks[0].Pickle, j.Tags)
	}
}

// maskJournals masks a secret only in the text that the script supplied, even if the journal's format has the same
// word or digits.
func TestMaskJournalsLeavesTheFormat(t *testing.T) {
	parsed := func(secrets *mask.Secrets, word string) *spool.Journal {
		var frames []byte
		for _, f := range []struct {
			kind spool.FrameType
			text string
		}{
			{spool.FrameProcess, `{"pid":1000000,"mode":"native"}`},
			{spool.FrameEnvironment,
				`{"torch":"2.000000","allocator_backend":"native","variables":{"reason":"a WORD b","native":"x"}}`},
			{spool.FrameNames, `{"names":[[1,"load WORD now"],[1000000,"plain"]]}`},
			{spool.FrameModules,
				`{"modules":[{"id":1,"path":"m","class":"Linear","parameter_bytes":9007199254000000}]}`},
			{spool.FrameConfig,
				`{"reason":"WORD","native":9007199254000001,"list":[1000000,"xWORD",{"reason":true}],"none":null}`},
			{spool.FrameMetric, `{"k":1000000,"time_ns":1700000000000000001,"name":"WORD","value":0.000000125}`},
			{spool.FramePrivacy, `{"noise_multiplier":1.000000,"accountant":"rdp"}`},
			{spool.FrameException, `{"type":"E","message":"<bad> WORD","oom":true}`},
			{spool.FramePlan, `{"warmup":1000000,"timed":2}`},
			{spool.FrameOOM, `{"k":7,"requested":1000000}`},
			{spool.FrameAllocator, "\x80\x04\x8c\x06native\x94\x8c\x06reason\x94000000filename."},
			{spool.FrameCheckpoint,
				`{"drain":1,"k":1000000,"reason":"native","time_ns":1700000000000000001,` +
					`"devices":[{"device":0,"stats":{"native":1000000}}]}`},
			{spool.FrameEnd, `{"reason":"native","marks":1000000}`},
		} {
			frames = spool.AppendFrame(frames, f.kind, []byte(strings.ReplaceAll(f.text, "WORD", word)))
		}
		dir := t.TempDir()
		marks := writeJournal(t, dir, "1-1", 1, frames)
		if err := maskJournals(dir, secrets); err != nil {
			t.Fatal(err)
		}
		j, err := spool.OpenLive(marks)
		if err != nil || len(j.Damaged) > 0 || j.Torn != nil {
			t.Fatalf("%+v, %v", j, err)
		}
		j.Path = ""
		for i := range j.Chunks {
			j.Chunks[i].Offset = 0
		}
		return j
	}
	for _, secret := range []string{"000000", "native", "reason"} {
		secrets := mask.Gather(nil, []string{"X_TOKEN=" + secret}, nil)
		got, want := parsed(secrets, secret), parsed(mask.Gather(nil, nil, nil), mask.Mask)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: masked\n%+v\nwant\n%+v", secret, got, want)
		}
		if got.Config["reason"] != mask.Mask || got.Names[1] != "load *** now" || got.Exception.Message != "<bad> ***" {
			t.Errorf("%s: config %v, names %v, %+v", secret, got.Config, got.Names, got.Exception)
		}
	}
}

func TestStepCounter(t *testing.T) {
	dir := t.TempDir()
	c := newStepCounter(dir)
	if got := c.read(); got != -1 {
		t.Errorf("%d steps without a journal", got)
	}
	writeJournal(t, dir, "1-1", 3, nil)
	if got := c.read(); got != 3 {
		t.Errorf("%d steps, want 3", got)
	}
	writeJournal(t, dir, "1-1", 4000, nil) // the journal grew by more than one reading takes in
	writeJournal(t, dir, "2-2", 9, nil)
	if got := c.read(); got != 4000 {
		t.Errorf("%d steps, want 4000", got)
	}
	if got := c.read(); got != 4000 {
		t.Errorf("%d steps when read again, want 4000", got)
	}
}

func TestOutcome(t *testing.T) {
	journal := func(oom bool) []*spool.Journal {
		return []*spool.Journal{{Rank: 0}, {Rank: 1, Exception: &spool.ExceptionInfo{Type: "OutOfMemoryError",
			Message: "CUDA out of memory\nmore", OOM: oom}}}
	}
	for _, test := range []struct {
		name           string
		exit           treeExit
		why            cause
		journals       []*spool.Journal
		status, reason string
	}{
		{"fine", treeExit{}, cause{}, nil, schemas.StatusOK, ""},
		{"an exception that was caught", treeExit{}, cause{}, journal(true), schemas.StatusOK, ""},
		{"fatal OOM", treeExit{Code: 1}, cause{}, journal(true), schemas.StatusOOM, "rank 1: OutOfMemoryError: CUDA " +
			"out of memory"},
		{"other exception", treeExit{Code: 1}, cause{}, journal(false), schemas.StatusFailed,
			"rank 1: OutOfMemoryError: CUDA out of memory"},
		{"no word", treeExit{Code: 7}, cause{}, nil, schemas.StatusFailed, "stderr"},
		{"kernel", treeExit{Code: 137, Signal: 9}, cause{}, nil, schemas.StatusKilled,
			"killed by SIGKILL; the kernel also sends it if the host runs out of memory"},
		{"time limit", treeExit{Code: 143, Signal: 15}, cause{timeout: time.Minute}, journal(true),
			schemas.StatusTimeout, "dpsight ended the run after its time limit of 1m0s"},
	} {
		m := &schemas.Manifest{Reason: "to be replaced"}
		outcome(m, test.exit, test.why, test.journals, "stderr")
		if m.Status != test.status || m.Reason != test.reason {
			t.Errorf("%s: %s, %q", test.name, m.Status, m.Reason)
		}
	}
}

// If several ranks failed, the run's reason comes from the rank that stopped first, since the others failed because of
// it.
func TestOutcomeOfRanks(t *testing.T) {
	journal := func(rank int32, last int64, e *spool.ExceptionInfo) *spool.Journal {
		return &spool.Journal{Rank: rank, Exception: e, Marks: []spool.Mark{{TimeNS: 1}, {TimeNS: last}}}
	}
	peers := &spool.ExceptionInfo{Type: "DistBackendError", Message: "connection closed by peer"}
	for _, test := range []struct {
		name           string
		cause          *spool.ExceptionInfo
		status, reason string
	}{
		{"exception", &spool.ExceptionInfo{Type: "ValueError", Message: "no"}, schemas.StatusFailed,
			"rank 1: ValueError: no"},
		{"memory", &spool.ExceptionInfo{Type: "OutOfMemoryError", Message: "no", OOM: true}, schemas.StatusOOM,
			"rank 1: OutOfMemoryError: no"},
		{"no word", nil, schemas.StatusFailed, "rank 0: DistBackendError: connection closed by peer"},
	} {
		m := &schemas.Manifest{}
		outcome(m, treeExit{Code: 1}, cause{}, []*spool.Journal{journal(0, 20, peers), journal(1, 10, test.cause),
			journal(2, 30, peers)}, "stderr")
		if m.Status != test.status || m.Reason != test.reason {
			t.Errorf("%s: %s, %q", test.name, m.Status, m.Reason)
		}
	}
}

// The reason of a failed run comes from the report of a launcher such as torchrun, if stderr has one. Otherwise it is
// the last line of stderr that has words.
func TestLastLine(t *testing.T) {
	const report = `Traceback
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
====================
train.py FAILED
--------------------
Failures:
[1]:
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 70)
--------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_23:57:33
  host      : rank : 9
  rank      : 2 (local_rank: 0)
  exitcode  : %s (pid: 1144)
  error_file: <N/A>
====================
`
	for text, want := range map[string]string{
		fmt.Sprintf(report, "7"):                    "rank 2 ended with exit code 7",
		fmt.Sprintf(report, "-9"):                   "rank 2 was killed by SIGKILL",
		"KeyError: 'x'\n=====\n \n----":             "KeyError: 'x'",
		"rank : 1\nexitcode : 2\nand no root cause": "and no root cause",
		"":   "",
		"--": "",
	} {
		var l lastLineWriter
		l.Write([]byte(text))
		if got := l.String(); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.5 GiB. See https://x.y": "CUDA out of memory. " +
			"Tried to allocate 2.00 GiB.",
		"index 3.5 is out of range": "index 3.5 is out of range", "a. b": "a. b", "": "",
	} {
		if got := sentences(text, 2); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// The collector asks the agent for a drain and waits for the answer. If none comes, it stops waiting at a time limit.
func TestDrainRequest(t *testing.T) {
	dir := t.TempDir()
	path := writeJournal(t, dir, "1-1", 1, nil)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for word := uint32(0); word != spool.RequestDrain; word, _ = spool.Requested(path) {
			time.Sleep(time.Millisecond)
		}
		spool.Request(path, spool.Answering) // a working agent gets more time than the limit for an idle one
		time.Sleep(300 * time.Millisecond)
		spool.Request(path, 0)
	}()
	begin := time.Now()
	waitForDrain(dir, 200*time.Millisecond, nil)
	if d := time.Since(begin); d < 300*time.Millisecond || d > 5*time.Second {
		t.Errorf("waited %s for an answer after 300 ms", d)
	}
	<-answered
	begin = time.Now()
	waitForDrain(dir, 100*time.Millisecond, nil)
	if d := time.Since(begin); d < 100*time.Millisecond || d > 5*time.Second {
		t.Errorf("waited %s where the limit is 100 ms", d)
	}
}
