package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"

	"github.com/dpsight/dpsight/collect/testkit"
)

// cyclic is a script that leaves 4 MiB in a reference cycle at each step, which Python's garbage collector frees some
// steps later.
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

// functional is a script that keeps no gradient from step to step. functional asserts that only its leaf of 4 MiB is
// allocated after each step, even if autograd's own thread runs late.
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

// rebuilt is a script in which DDP makes new buckets right after the first backward, while NCCL's watchdog still holds
// the first buckets.
const rebuilt = `
import torch
import torch.distributed as dist

device = torch.device("cuda", 0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=device)
layers = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(4)]).to(device)
model = torch.nn.parallel.DistributedDataParallel(layers)
x = torch.randn(8, 1024, device=device)
model(x).sum().backward()
torch.cuda.reset_peak_memory_stats()
model(x).sum().backward()
held = torch.cuda.max_memory_allocated() / 2**20
assert 48 + 65 < held < 48 + 65 + 16, held  # parameters, gradients, one set of buckets, and cuBLAS's workspace
dist.destroy_process_group()
`

// TestPredictGarbage checks that dpsight states the range of a peak that depends on when Python collects garbage.
// dpsight makes further runs that bound the range.
func TestPredictGarbage(t *testing.T) {
	interpreter := python(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, scriptFile(t, cyclic))
	if r.code != 0 || len(doc.Runs) != 1 {
		t.Fatalf("exit %d, %d runs\n%s", r.code, len(doc.Runs), r.stderr)
	}
	run := doc.Runs[0]
	c := run.Confidence
	ranged := regexp.MustCompile("from 8.00 MiB if garbage is collected at once to 1[67][0-9].00 MiB if it never is")
	if c == nil || c.Level != schemas.Close || !ranged.MatchString(strings.Join(c.Reasons, "\n")) {
		t.Errorf("confidence %+v", c)
	}
	if p := *run.PeakBytes >> 20; p < 8 || p > 172 {
		t.Errorf("a peak of %d MiB", p)
	}
	// If Python collected no garbage before the script's end, the first run already shows the peak without
	// collections, and dpsight does not repeat it.
	none := !strings.Contains(r.stderr, "Python's garbage collector freed ")
	if !strings.Contains(r.stderr, "predicting again with garbage collected at once") ||
		strings.Contains(r.stderr, "predicting again without it") == none {
		t.Errorf("not said what is made again\n%s", r.stderr)
	}
}

// TestPredictMakesNoGarbage checks that the garbage collector frees no objects of the agent. The test's script has an
// LSTM, since the stack frames of moving an LSTM to the device hold tensors that no longer belong to the model.
func TestPredictMakesNoGarbage(t *testing.T) {
	testkit.Rest(t)
	const moved = `
import torch
model = torch.nn.LSTM(32, 64).cuda()
model(torch.randn(20, 8, 32).cuda())[0].sum().backward()
`
	r, doc := predictDocument(t, t.TempDir(), nil, "--", python(t), scriptFile(t, moved))
	if r.code != 0 || len(doc.Runs) != 1 || strings.Contains(r.stderr, "garbage collector") {
		t.Errorf("exit %d, %d runs\n%s", r.code, len(doc.Runs), r.stderr)
	}
}

// TestPredictWaitsForAutograd checks that a prediction is exact expected although autograd's threads free a step's
// memory at varying times.
func TestPredictWaitsForAutograd(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, scriptFile(t, functional))
	if r.code != 0 || len(doc.Runs) != 1 || doc.Runs[0].Confidence.Level != schemas.ExactExpected {
		t.Errorf("exit %d, %+v\n%s", r.code, doc.Runs, r.stderr)
	}
}

// TestPredictOutOfTime checks that the time limit is reported, once, as what ended a run. A script that leaves
// garbage is not predicted again, since ended runs bound no peak.
func TestPredictOutOfTime(t *testing.T) {
	testkit.Rest(t)
	endless := strings.Replace(cyclic, "range(40)", "iter(int, 1)", 1)
	r, doc := predictDocument(t, t.TempDir(), nil, "--timeout", "9s", "--", python(t), scriptFile(t, endless))
	if r.code != 1 || len(doc.Runs) != 1 {
		t.Fatalf("exit %d, %d runs\n%s", r.code, len(doc.Runs), r.stderr)
	}
	reasons := strings.Join(doc.Runs[0].Confidence.Reasons, "\n")
	if strings.Count(reasons, "timeout") != 1 || !strings.Contains(reasons, "the run ended early (timeout)") ||
		strings.Contains(reasons, "otherwise") || strings.Contains(reasons, "from ") ||
		strings.Contains(r.stderr, "predicting again") {
		t.Errorf("reasons\n%s\n%s", reasons, r.stderr)
	}
}

// TestPredictWaitsForWatchdog checks that DDP's first buckets are gone when the second forward makes new ones. The
// prediction also says how much higher the peak is on a device on which they are not gone yet.
func TestPredictWaitsForWatchdog(t *testing.T) {
	testkit.Rest(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", python(t), scriptFile(t, rebuilt))
	if r.code != 0 || len(doc.Runs) != 1 {
		t.Fatalf("exit %d, %d runs\n%s", r.code, len(doc.Runs), r.stderr)
	}
	c := doc.Runs[0].Confidence
	const more = "up to 16.00 MiB more than was predicted"
	if c.Level != schemas.Close || !strings.Contains(strings.Join(c.Reasons, "\n"), more) {
		t.Errorf("confidence %+v", c)
	}
}
