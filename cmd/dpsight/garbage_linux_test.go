package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// cyclic leaves 4 MiB a step in a reference cycle, which Python's garbage collector frees some steps later.
const cyclic = `
import torch

class Holder:
    def __init__(self, x):
        self.x, self.me = x, self

x = torch.rand(1024, 1024, device="cuda")
for step in range(40):
    held = Holder(x * 2)
    junk = [[i] for i in range(300)]
    del held
`

// functional keeps nothing of a step: what autograd's own thread still holds of it is another matter.
const functional = `
import torch

def chain(x):
    for _ in range(10):
        x = x.sin().cos()
    return x.sum()

leaf = torch.rand(1024, 1024, device="cuda", requires_grad=True)
held = set()
for step in range(20):
    gradient = torch.func.grad(chain)(leaf)
    torch.cuda.memory_allocated()
    del gradient
    held.add(torch.cuda.memory_allocated() >> 20)
assert held == {4}, held
`

// TestPredictGarbage finds the range of a peak that depends on when garbage is collected, and the runs that bound it.
func TestPredictGarbage(t *testing.T) {
	interpreter := python(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, scriptFile(t, cyclic))
	if r.code != 0 || len(doc.Runs) != 1 {
		t.Fatalf("exit %d, %d runs\n%s", r.code, len(doc.Runs), r.stderr)
	}
	run := doc.Runs[0]
	c := run.Confidence
	ranged := regexp.MustCompile("from 8.00 MiB where garbage is collected at once to 1[67][0-9].00 MiB where it never is")
	if c == nil || c.Level != schemas.Close || !ranged.MatchString(strings.Join(c.Reasons, "\n")) {
		t.Errorf("confidence %+v", c)
	}
	if p := *run.PeakBytes >> 20; p < 8 || p > 172 {
		t.Errorf("a peak of %d MiB", p)
	}
	// Where no collection came before the end the run is itself the one without.
	none := !strings.Contains(r.stderr, "were freed by Python's garbage collector")
	if !strings.Contains(r.stderr, "predicting again with garbage collected at once") ||
		strings.Contains(r.stderr, "predicting again without it") == none {
		t.Errorf("not said what is made again\n%s", r.stderr)
	}
}

// TestPredictWaitsForAutograd finds what a step held freed as soon as the step has ended, whenever autograd's threads
// get to it.
func TestPredictWaitsForAutograd(t *testing.T) {
	interpreter := python(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, scriptFile(t, functional))
	if r.code != 0 || len(doc.Runs) != 1 || doc.Runs[0].Confidence.Level != schemas.ExactExpected {
		t.Errorf("exit %d, %+v\n%s", r.code, doc.Runs, r.stderr)
	}
}
