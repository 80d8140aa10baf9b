package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// defective is a training loop with one defect, or none.
const defective = `
import sys
import torch
from torch import nn
from torch.nn import functional as F

mode = sys.argv[1]
width = 1024
body = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).cuda()
head = nn.Linear(width, 24 * width).cuda() if mode == "logits" else None
parameters = list(body.parameters()) + (list(head.parameters()) if head else [])
optimizer = torch.optim.Adam(parameters, foreach=False)
side = torch.cuda.Stream()
if mode == "samethread":
    torch.autograd.set_multithreading_enabled(False)
if mode in ("caught", "fatal"):
    torch.cuda.set_per_process_memory_fraction(0.01)
held = []

def step(rows):
    if mode != "late":
        optimizer.zero_grad(set_to_none=mode != "keep")
    x = torch.randn(rows, width, device="cuda")
    y = body(x)
    if mode == "streams":
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x @ x.T
        torch.cuda.current_stream().wait_stream(side)
    loss = F.cross_entropy(head(y), torch.zeros(rows, dtype=torch.long, device="cuda")) if head else y.square().mean()
    del x, y
    if mode == "late":
        optimizer.zero_grad()
    loss.backward()
    optimizer.step()

for i in range(16 if mode == "growth" else 5):
    if mode == "growth":
        held.append(body(torch.randn(64, width, device="cuda")).square().mean())
    rows = 2048 if head else 1024
    if mode == "fragments":
        # Every other piece stays: what lies between them fits no larger request.
        pieces = [torch.empty(12 << 20, dtype=torch.uint8, device="cuda") for _ in range(40)]
        held.append(pieces[::2])
        del held[:-1], pieces
        large = torch.empty((200 + 40 * i) << 20, dtype=torch.uint8, device="cuda")
    if mode in ("caught", "fatal") and i in (3, 4):
        rows = 65536
    try:
        step(rows)
    except torch.OutOfMemoryError:
        if mode == "fatal":
            raise
        print("held", torch.cuda.memory_allocated(), flush=True)
print("peak", torch.cuda.max_memory_allocated(), flush=True)
`

// dpsight finds each planted defect. The saving that it states equals the fall of the peak in the same loop without
// the defect.
func TestDefectsAreFound(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	python(t)
	type recorded struct {
		peak     int64
		findings []finding
	}
	results := map[string]recorded{}
	for _, mode := range []string{"clean", "keep", "late", "streams", "samethread", "fragments", "logits", "growth"} {
		e := record(t, defective, []string{"--name", mode}, []string{mode}, "", nil)
		e.expect(t, schemas.StatusOK, exitDone)
		var peak int64
		log, err := os.ReadFile(filepath.Join(e.dir, "stdout.log"))
		if err != nil {
			t.Fatal(err)
		}
		if _, text, _ := strings.Cut(string(log), "peak "); text == "" {
			t.Fatalf("%s", log)
		} else if n, err := fmt.Sscan(text, &peak); n != 1 {
			t.Fatal(err)
		}
		results[mode] = recorded{peak, findingsOf(t, e.store)[mode]}
	}
	clean := results["clean"]
	// If torch keeps a workspace for each thread (2.15 keeps none), every run also has the finding thread-workspaces,
	// for the workspace of backward's thread.
	want := []string{"rule-of-thumb"}
	keepsWorkspaces := clean.peak != results["samethread"].peak
	if keepsWorkspaces {
		want = append(want, "thread-workspaces")
	}
	if got := ids(clean.findings); !slices.Equal(got, want) {
		t.Errorf("a clean loop: %v, want %v", got, want)
	}
	for _, c := range []struct {
		mode, id string
		fixed    string // the mode without the defect
	}{{"keep", "kept-gradients", "clean"}, {"late", "kept-gradients", "clean"}, {"streams", "stream-workspaces",
		"clean"}, {"clean", "thread-workspaces", "samethread"}} {
		f := findFinding(results[c.mode].findings, c.id)
		if strings.HasSuffix(c.id, "-workspaces") && !keepsWorkspaces {
			if f != nil {
				t.Errorf("%s: torch keeps no workspaces, and %+v", c.mode, f)
			}
			continue
		}
		if f == nil || f.saves() == nil {
			t.Errorf("%s: %v", c.mode, ids(results[c.mode].findings))
			continue
		}
		if want := results[c.mode].peak - results[c.fixed].peak; *f.saves() != want {
			t.Errorf("%s: %s saves %d bytes, the loop without it takes %d less", c.mode, c.id, *f.saves(), want)
		}
	}
	if f := findFinding(results["samethread"].findings, "thread-workspaces"); f != nil {
		t.Errorf("one thread: %+v", f)
	}
	for mode, id := range map[string]string{"fragments": "fragmentation", "logits": "output-copies"} {
		f := findFinding(results[mode].findings, id)
		if f == nil || f.saves() == nil || *f.saves() <= 64<<20 {
			t.Errorf("%s: %v", mode, results[mode].findings)
		}
	}
	// A forward pass without a backward keeps its input and the outputs of its layers.
	if f := findFinding(results["growth"].findings, "kept-graphs"); f == nil ||
		f.figure(t, "growth a step") < 64*(1+4+4+1)*1024*4 || !strings.Contains(f.Words, " of module 0") ||
		results["growth"].findings[0].ID != "kept-graphs" {
		t.Errorf("growth: %+v", results["growth"].findings)
	}
	if f := findFinding(results["logits"].findings, "output-copies"); f != nil &&
		f.figure(t, "largest output") != 2048*24*1024*4 {
		t.Errorf("the output: %+v", f)
	}
	if f := findFinding(results["fragments"].findings, "kept-gradients"); f != nil {
		t.Errorf("%+v", f)
	}
}

// failedInForward matches any module: if torch keeps no workspaces, there is room for the first layer and none for the
// second.
var failedInForward = regexp.MustCompile(`by module [01] failed in forward of step 3`)

// A failed allocation is reported with its size, its place, what held the memory and what was cached. A script that
// catches the failure and continues ends well.
func TestFailedAllocations(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		status string
		code   int
		fail   int
	}{"fatal": {schemas.StatusOOM, exitFailed, 1}, "caught": {schemas.StatusOK, exitDone, 2}} {
		e := record(t, defective, []string{"--name", mode}, []string{mode}, "", nil)
		e.expect(t, want.status, want.code)
		findings := findingsOf(t, e.store)[mode]
		var failed []finding
		for _, f := range findings {
			if f.ID == "oom" {
				failed = append(failed, f)
			}
		}
		if len(failed) != want.fail {
			t.Fatalf("%s: %v", mode, ids(findings))
		}
		if mode == "fatal" && findings[0].ID != "oom" {
			t.Errorf("what the run died of is not the first: %v", findings[0])
		}
		for i, f := range failed {
			at := "oom"
			if i > 0 {
				at = fmt.Sprintf("oom=%d", i+1)
			}
			allocated := e.allocated(t, at)
			if f.figure(t, "requested") != 65536*4096*4 || !failedInForward.MatchString(f.Words) {
				t.Errorf("%s: %+v", mode, f)
			}
			if f.figure(t, "allocated") != allocated || f.figure(t, "held as inputs") != 65536*1024*4 {
				t.Errorf("%s at %s: allocated %d, %+v", mode, at, allocated, f)
			}
			reserved, cached := f.figure(t, "reserved"), f.figure(t, "cached and free")
			if reserved != allocated+cached || f.figure(t, "largest free piece") > cached {
				t.Errorf("%s: reserved %d, allocated %d, cached %d", mode, reserved, allocated, cached)
			}
			short := float64(reserved+f.figure(t, "requested")) - float64(f.figure(t, "limit of the process"))
			if math.Abs(short-float64(f.figure(t, "short of"))) > 0 || short <= 0 {
				t.Errorf("%s: short of %f, %+v", mode, short, f)
			}
		}
		if mode == "caught" { // while the script handles the exception, the failed step's memory is still held
			if want, got := held(t, e), e.allocated(t, "oom"); got != want {
				t.Errorf("%d bytes at the failure, torch held %d", got, want)
			}
		}
		beyond := fmt.Sprintf("oom=%d", want.fail+1)
		refused := dpsight(t, "", "analyze", "breakdown", "--store", e.store, mode, "--at", beyond)
		if refused.code != exitUsage || !strings.Contains(refused.stderr, "ran out of memory") {
			t.Errorf("%s: %+v", beyond, refused)
		}
	}
}
