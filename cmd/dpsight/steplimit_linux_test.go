package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// caseFile returns the path of a script in collect/livetest/testdata/cases.
func caseFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "collect", "livetest", "testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// evaluating is a script that never ends. The script holds the most memory in the evaluation after its second step. The
// script catches every Exception, but not every BaseException.
const evaluating = `
import atexit, os, torch
model = torch.nn.Linear(64, 64).cuda(int(os.environ.get("LOCAL_RANK", 0)))
optimizer = torch.optim.AdamW(model.parameters())
atexit.register(lambda: print("at exit", flush=True))
step = 0
try:
    while True:
        try:
            model(torch.randn(8, 64).to(model.weight.device)).sum().backward()
            optimizer.step()
        except Exception as error:
            print("caught", error)
        if step == 1:
            model.eval()
            with torch.no_grad():
                model(torch.randn(4096, 64).to(model.weight.device))
            model.train()
        step += 1
finally:
    print("finally", step, flush=True)
`

// predict ends a training that would not end by itself, between two steps. predict ends the training after the number
// of steps that --steps gives, or once an evaluation was seen and neither allocated nor reserved has reached a new
// maximum for three steps. The prediction states the reason.
func TestPredictEndsTheScript(t *testing.T) {
	interpreter := python(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, scriptFile(t, evaluating))
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Ended == nil {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	p := &doc.Runs[0]
	const reason = "ended after step 6 because neither the highest allocated nor the highest reserved had risen for 3 " +
		"steps and an evaluation was seen"
	if p.Status != schemas.StatusOK || p.Reason != reason || p.Why != reason || p.Fits == nil || !*p.Fits ||
		*p.At.Phase != schemas.PhaseEval || !p.Complete ||
		*p.Ended != (schemas.Ended{Step: 6, Why: schemas.EndedEvaluated, Flat: 3, Seconds: p.Ended.Seconds}) {
		t.Errorf("%s", r.stdout)
	}
	if p.Confidence.Level != schemas.Close || p.Confidence.Reasons[0] !=
		"the script was ended after step 6: what later steps need is unknown" {
		t.Errorf("confidence %+v", p.Confidence)
	}
	if !strings.Contains(r.stderr, "finally 5\nat exit\n") || strings.Contains(r.stderr, "caught") {
		t.Errorf("the script ended otherwise:\n%s", r.stderr)
	}
	store := t.TempDir()
	r, doc = predictDocument(t, store, nil, "--steps", "2", "--", interpreter, caseFile(t, "long_loop.py"))
	if r.code != exitDone || doc.Runs[0].Reason != "ended after step 2 because --steps asks for no more" ||
		doc.Runs[0].Params["predicted_steps"] != "2" {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// catching is a script that catches every exception, also every BaseException, and continues.
const catching = `
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
while True:
    try:
        model(torch.randn(8, 64).cuda()).sum().backward()
        optimizer.step()
    except BaseException as error:
        print("caught", type(error).__name__, step, flush=True)
    step += 1
`

// predict ends a script by raising an exception. If the script catches it, predict raises it again at each of ten
// steps, and then kills the script. Nothing recorded is lost.
func TestPredictEndsByForce(t *testing.T) {
	testkit.Rest(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--steps", "3", "--", python(t), scriptFile(t, catching))
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Ended == nil || doc.Runs[0].Ended.Step != 3 ||
		strings.Count(r.stderr, "caught Ended") != 10 || !doc.Runs[0].Complete {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// predict ends all ranks of a script after the same step, and their launcher exits without an error.
func TestPredictEndsRanksAlike(t *testing.T) {
	testkit.Rest(t)
	interpreter, store := python(t), t.TempDir()
	r, doc := predictDocument(t, store, nil, "--", interpreter, "-m", "torch.distributed.run", "--standalone",
		"--nproc-per-node", "2", scriptFile(t, evaluating))
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Ended == nil || len(doc.Runs[0].Ranks) != 2 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	output, err := os.ReadFile(filepath.Join(store, doc.Runs[0].RunID, "stdout.log"))
	var ended []string
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "finally") {
			ended = append(ended, line)
		}
	}
	if err != nil || len(ended) != 2 || ended[0] != ended[1] {
		t.Errorf("%q, %v", ended, err)
	}
}

// If the time limit ends a script after some steps, predict still answers whether what it has seen fits. The
// confidence is then indicative.
func TestPredictAnswersAtItsTimeLimit(t *testing.T) {
	testkit.Rest(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--timeout", "25s", "--steps", "all", "--", python(t),
		caseFile(t, "long_loop.py"))
	if r.code != exitDone || len(doc.Runs) != 1 || doc.Runs[0].Fits == nil || !*doc.Runs[0].Fits ||
		doc.Runs[0].Status != schemas.StatusTimeout || *doc.Runs[0].PeakBytes < 64<<20 ||
		doc.Runs[0].Why != "timeout: dpsight ended the run after its time limit of 25s" ||
		doc.Runs[0].Confidence.Level != schemas.Indicative {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
