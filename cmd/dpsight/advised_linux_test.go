package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// A change is a script in two versions: as written, and changed as a finding advises.
type change struct {
	script   string // name of a script in examples/reports, or of one in inPairs
	found    []string
	advised  string   // the argument that selects the changed version
	mend     []string // or, without such an argument, the old text and the new text
	id, line string   // id of the first finding, and a text in the line that it names
	holder   string   // part of the finding's holder; empty if it names none
	edit     string   // text of the line that the finding says to change; empty if it names none
	known    string   // how the saving is known; empty if it names no saving
	allFrom  int64    // least fall of the peak, in per cent of a saving that is an upper bound
}

// If a script is changed as its first finding advises, the peak falls by exactly, at least or at most the saving that
// the finding states, as its confidence says. The changed script no longer has the finding.
func TestAdvisedScriptsPeakLower(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	python(t)
	for _, c := range []change{
		{script: "case01", advised: "autograd", id: "retained-graph", line: "x.sin().cos()", holder: "global g → grad_fn",
			edit: "g = torch.func.grad(", known: "at_most", allFrom: 90},
		{script: "case04", advised: "nocache", id: "autocast-cache", line: "h = layer(h)", holder: "autocast's cache",
			edit: "torch.autocast(", known: "replayed"},
		{script: "case10", advised: "drop", id: "kept-exception", line: "torch.nn.Linear(",
			holder: "global errors[*] → exception caught at train.py:30 → frame of attempt()", edit: "errors.append(e)"},
		{script: "case13", advised: "view", id: "ddp-gradient-copies", line: ".backward()",
			holder: "buckets of DistributedDataParallel", edit: "DistributedDataParallel(", known: "replayed"},
		{script: "case15", advised: "alone", id: "idle-models", line: "copy.deepcopy(base)",
			holder: "ready", known: "at_least"},
		{script: "eval_inputs", mend: []string{").item())", ").item()); del x"}, id: "previous-value",
			line: "torch.randn(256, 3, 224, 224)", holder: "global x", edit: "torch.randn(256, 3, 224, 224)", known: "at_least"},
		{script: "eval_first", mend: []string{"@ x\n", "@ x; x = x[:64].clone(); del cov\n"}, id: "script-tensors",
			line: "torch.randn(4096, 1024", holder: "global x", edit: "torch.randn(4096, 1024", known: "at_most", allFrom: 90},
		{script: "untrained", found: []string{"kept"}, advised: "dropped", id: "untrained-gradients", line: "model(x)",
			edit: "torch.optim.Adam(", known: "at_least"},
		{script: "own hooks", found: []string{"kept"}, advised: "dropped", id: "own-hooks", line: "model(x)",
			edit: "GradSampleModule(", known: "at_most", allFrom: 60},
		{script: "per sample", found: []string{"hooks"}, advised: "ghost", id: "per-sample-gradients",
			line: "criterion(model(", edit: "make_private(", known: "at_most", allFrom: 95},
		{script: "per sample, embedding", found: []string{"hooks"}, advised: "ghost", id: "per-sample-embedding",
			line: "self.table(x)", edit: "make_private(", known: "at_most", allFrom: 95},
		{script: "clip", found: []string{"ghost"}, advised: "hooks", id: "clip-temporaries", line: "self.first(x)",
			edit: "make_private(", known: "at_most", allFrom: 90},
		{script: "exception", found: []string{"kept"}, advised: "dropped", id: "kept-exception", line: "torch.empty(300",
			holder: "exception caught at train.py:", edit: "errors.append(error)", known: "at_least"},
		{script: "earlier", found: []string{"kept"}, advised: "dropped", id: "earlier-graph", line: "model(x)",
			holder: "grad_fn", edit: "change = loss - last", known: "at_least"},
		{script: "view", found: []string{"kept"}, advised: "dropped", id: "view-keeps-base", line: "torch.randn(32",
			holder: "global part", edit: "part = whole[:4096]", known: "at_least"},
		{script: "checkpoint", found: []string{"kept"}, advised: "dropped", id: "whole-checkpoint",
			line: "checkpoint(model, x", edit: "checkpoint(model, x", known: "at_most", allFrom: 60},
		{script: "frozen", found: []string{"kept"}, advised: "dropped", id: "frozen-activations", line: "model(x)",
			known: "at_least"},
		{script: "dropout", found: []string{"kept"}, advised: "dropped", id: "lora-dropout", line: "self.lora_dropout(x)",
			edit: "self.lora_dropout = ", known: "at_most", allFrom: 90},
		{script: "logits", found: []string{"kept"}, advised: "dropped", id: "output-copies", line: "F.cross_entropy(head(y)",
			known: "at_most", allFrom: 90},
		{script: "foreach", found: []string{"kept"}, advised: "dropped", id: "optimizer-temporaries",
			line: "optimizer.step()", edit: "torch.optim.Adam(", known: "at_most", allFrom: 70},
		{script: "slack", found: []string{"kept"}, advised: "dropped", id: "slack", line: "torch.empty(",
			known: "at_most", allFrom: 90},
	} {
		t.Run(c.script, c.lowers)
	}
}

// lowers runs both versions of the script.
func (c change) lowers(t *testing.T) {
	text := scriptOf(t, c.script)
	found, peak := findingsAndPeak(t, text, c.found...)
	advised, lower := findingsAndPeak(t, strings.NewReplacer(c.mend...).Replace(text), c.advised)
	if len(found) == 0 || found[0].ID != c.id || (found[0].saves() == nil) != (c.known == "") {
		t.Errorf("%s: %v, want %s", c.script, ids(found), c.id)
		return
	}
	f, falls := &found[0], peak-lower
	if c.known != "" {
		c.holds(t, f, falls)
	}
	if !lineHas(t, text, f, c.line) || !strings.Contains(holderOf(f), c.holder) {
		t.Errorf("%s: %+v, %q", c.script, f.Place.Line, holderOf(f))
	}
	c.edits(t, text, f)
	// The changed script may have the finding once more, for a smaller saving: the reduced tensors still take memory.
	if f := findFinding(advised, c.id); f != nil && (f.saves() == nil || *f.saves() > falls/2) {
		t.Errorf("%s %s: %+v", c.script, c.advised, f)
	}
}

// edits checks the line that the finding says to change.
func (c *change) edits(t *testing.T, text string, f *finding) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, e := range f.Edits {
		if c.edit != "" && strings.Contains(lines[e.Line-1], c.edit) {
			return
		}
	}
	if c.edit == "" && len(f.Edits) == 0 {
		return
	}
	t.Errorf("%s: to edit: %+v, want %q", c.script, f.Edits, c.edit)
}

// The saving of the findings fragmentation and cached is an upper bound: reserved falls by at least a quarter of it.
func TestAdvisedScriptsReserveLess(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	python(t)
	run := func(mode string) ([]finding, int64) {
		e := record(t, inPairs["fragments"], nil, []string{mode}, "", nil)
		e.expect(t, schemas.StatusOK, exitDone)
		var reserved int64
		_, text, _ := strings.Cut(e.stderr, "reserved ")
		if _, err := fmt.Sscan(text, &reserved); err != nil {
			t.Fatalf("%v\n%s", err, e.stderr)
		}
		return findingsOf(t, e.store)["train"], reserved
	}
	found, reserved := run("kept")
	_, lower := run("dropped")
	c := change{script: "fragments", advised: "dropped", known: "at_most", allFrom: 25}
	for _, id := range []string{"fragmentation", "cached"} {
		f := findFinding(found, id)
		if c.id = id; f == nil || f.saves() == nil {
			t.Errorf("%v, want %s", ids(found), id)
			continue
		}
		c.holds(t, f, reserved-lower)
	}
}

// holds checks that falls, the bytes by which the change lowers the peak, agree with the saving that the finding
// states.
func (c *change) holds(t *testing.T, f *finding, falls int64) {
	t.Helper()
	saves := *f.saves()
	kept := map[string]bool{"replayed": saves == falls, "at_least": saves <= falls,
		"at_most": saves >= falls && falls >= saves*c.allFrom/100}[c.known]
	if f.Confidence != c.known || !kept || saves <= 0 {
		t.Errorf("%s: %s saves %d bytes (%s), and %s takes %d less", c.script, c.id, saves, f.Confidence, c.advised, falls)
	}
}

// scriptOf returns the text of a script in examples/reports, or of one in inPairs.
func scriptOf(t *testing.T, name string) string {
	t.Helper()
	if text := inPairs[name]; text != "" {
		return text
	}
	text, err := os.ReadFile(filepath.Join("../../collect/livetest/testdata/cases", name+".py"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// findingsAndPeak records a script as train.py and returns its findings and its peak.
func findingsAndPeak(t *testing.T, script string, args ...string) ([]finding, int64) {
	t.Helper()
	e := record(t, script, nil, args, "", nil)
	e.expect(t, schemas.StatusOK, exitDone)
	return findingsOf(t, e.store)["train"], e.allocated(t, "peak")
}

// inPairs are scripts that take an argument: "kept" is the version with the defect, "dropped" the changed one.
var inPairs = map[string]string{
	// The first attempt to allocate fails, and a smaller attempt succeeds.
	"exception": `
import sys, torch
torch.cuda.set_per_process_memory_fraction(2 ** 30 / torch.cuda.get_device_properties(0).total_memory)
errors = []
def attempt(mib):
    held = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda"), held.numel()
for mib in (2048, 200):
    try:
        result = attempt(mib)
    except torch.OutOfMemoryError as error:
        if sys.argv[1] == "kept":
            errors.append(error)
print(result[1])
`,
	// A running loss keeps the graph of the previous step until the next loss replaces it.
	"earlier": trains + `
last = None
for step in range(4):
    loss = model(x).square().mean()
    change = loss - last if last is not None else loss
    optimizer.zero_grad()
    loss.backward(retain_graph=sys.argv[1] == "kept")
    optimizer.step()
    last = loss if sys.argv[1] == "kept" else loss.detach()
    del loss, change
`,
	// All layers are in one checkpoint, or in four.
	"checkpoint": trains + `
from torch.utils.checkpoint import checkpoint
model.extend(model[:] + torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Tanh(), torch.nn.Tanh(), torch.nn.Tanh()))
x = torch.randn(16384, 1024, device="cuda")
for step in range(3):
    if sys.argv[1] == "kept":
        y = checkpoint(model, x, use_reentrant=False)
    else:
        y = x
        for i in range(0, len(model), 5):
            y = checkpoint(model[i:i + 5], y, use_reentrant=False)
    optimizer.zero_grad()
    y.square().mean().backward()
    del y
    optimizer.step()
`,
	// Layers whose parameters the optimizer does not have still get gradients.
	"untrained": trains + `
model.append(torch.nn.Linear(1024, 16, device="cuda"))
if sys.argv[1] == "dropped":
    model[:-1].requires_grad_(False)
x = torch.randn(64, 1024, device="cuda")
optimizer = torch.optim.Adam(model[-1].parameters(), foreach=False)
for step in range(4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del loss
`,
	// The hooks hold a layer's input as it was before autocast cast it. In the changed version they hold the cast
	// input, as autograd does.
	"own hooks": `
import sys, warnings, torch
from opacus import GradSampleModule
warnings.filterwarnings("ignore")
class Cast(torch.nn.Module):
    def forward(self, x):
        return x.bfloat16() if sys.argv[1] == "dropped" else x
layers = [layer for _ in range(6) for layer in (torch.nn.LayerNorm(256), Cast(), torch.nn.Linear(256, 256))]
model = GradSampleModule(torch.nn.Sequential(*layers, torch.nn.Linear(256, 8)).cuda())
x = torch.randn(32, 1024, 256, device="cuda")
for step in range(4):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).float().square().mean()
    loss.backward()
    for p in model.parameters():
        p.grad_sample = p.grad = None
    del loss
`,
	// Opacus clips the same models, with hooks or with ghost clipping.
	"per sample": `
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)], torch.nn.Linear(1024, 8))
x = torch.randn(64, 1024)
` + private,
	"per sample, embedding": `
import torch
class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(20000, 256), torch.nn.Linear(256, 8)
    def forward(self, x):
        return self.head(self.table(x).mean(1))
model, x = Table(), torch.randint(0, 20000, (64, 32))
` + private,
	"clip": `
import torch
class Tokens(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)
    def forward(self, x):
        return self.head(torch.relu(self.first(x)).mean(1))
model, x = Tokens(), torch.randn(64, 2048, 64)
` + private,
	// The input of frozen layers requires a gradient.
	"frozen": trains + `
x = torch.randn(16384, 1024, device="cuda")
model.requires_grad_(False).append(torch.nn.Linear(1024, 16, device="cuda"))
optimizer = torch.optim.Adam(model[-1].parameters())
for step in range(4):
    x.requires_grad_(sys.argv[1] == "kept")
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del loss
`,
	// Three adapted layers share an input.
	"dropout": `
import sys, torch
class Adapted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(1024, 1024).requires_grad_(False)
        self.lora_dropout = torch.nn.Dropout(0.1) if sys.argv[1] == "kept" else torch.nn.Identity()
        self.lora_A = torch.nn.Linear(1024, 8, bias=False)
        self.lora_B = torch.nn.Linear(8, 1024, bias=False)
    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(self.lora_dropout(x)))
layers = torch.nn.ModuleList(Adapted() for _ in range(3)).cuda()
optimizer = torch.optim.SGD([p for p in layers.parameters() if p.requires_grad], lr=0.1)
x = torch.randn(16384, 1024, device="cuda")
for step in range(4):
    loss = sum(layer(x).mean() for layer in layers)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del loss
`,
	// The loss is computed from all logits at once, or from an eighth of the logits at a time.
	"logits": `
import sys, torch
from torch.nn import functional as F
body, head = torch.nn.Linear(256, 256).cuda(), torch.nn.Linear(256, 32768, bias=False).cuda()
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
x, labels = torch.randn(4096, 256, device="cuda"), torch.zeros(4096, dtype=torch.long, device="cuda")
for step in range(4):
    optimizer.zero_grad()
    y = body(x)
    if sys.argv[1] == "kept":
        F.cross_entropy(head(y), labels).backward()
    else:
        inner = y.detach().requires_grad_()
        for part, label in zip(inner.chunk(8), labels.chunk(8)):
            (F.cross_entropy(head(part), label) / 8).backward()
        y.backward(inner.grad)
    optimizer.step()
    del y
`,
	// The optimizer updates all parameters together ("kept"), or one after another ("dropped").
	"foreach": `
import sys, torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), foreach=sys.argv[1] == "kept")
x = torch.randn(64, 2048, device="cuda")
for step in range(4):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
`,
	// The allocator leaves a remainder of up to 1 MiB in a block, unless segments are expandable.
	"slack": expandable + `
kept = [torch.empty((25 << 20) + 4096, dtype=torch.uint8, device="cuda") for _ in range(20)]
`,
	// Every second piece is kept, so the gaps between pieces are too small for a larger request.
	"fragments": expandable + `
held = []
for i in range(5):
    pieces = [torch.empty(12 << 20, dtype=torch.uint8, device="cuda") for _ in range(40)]
    held.append(pieces[::2])
    del held[:-1], pieces
    large = torch.empty((200 + 40 * i) << 20, dtype=torch.uint8, device="cuda")
print("reserved", torch.cuda.max_memory_reserved(), flush=True)
`,
	// The script keeps a view of a part of a tensor, so the whole tensor stays in memory.
	"view": trains + `
whole = torch.randn(32 << 20, device="cuda")
part = whole[:4096] if sys.argv[1] == "kept" else whole[:4096].clone()
del whole
for step in range(4):
    optimizer.zero_grad()
    (model(x).square().mean() + part.mean()).backward()
    optimizer.step()
`,
}

// expandable begins a script that uses expandable segments if the finding's advice is followed.
const expandable = `
import os, sys
if sys.argv[1] == "dropped":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch
`

// private is the end of a script that trains with Opacus.
const private = `
import sys, warnings
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset
warnings.filterwarnings("ignore")
model.cuda()
optimizer, criterion = torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(x, torch.randint(0, 8, (64,))), batch_size=16)
made = PrivacyEngine().make_private(
    module=model, optimizer=optimizer, criterion=criterion, data_loader=loader, noise_multiplier=1.0,
    max_grad_norm=1.0, poisson_sampling=False, grad_sample_mode=sys.argv[1])
model, optimizer, loader = made[0], made[1], made[-1]
if sys.argv[1] == "ghost":
    criterion = made[2]
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
`

// trains is the beginning of a script that trains.
const trains = `
import sys, torch
layers = [layer for _ in range(4) for layer in (torch.nn.Linear(1024, 1024), torch.nn.Tanh())]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
x = torch.randn(4096, 1024, device="cuda")
`

// holderOf returns the holder that a finding names, or "".
func holderOf(f *finding) string {
	if f.Holder == nil {
		return ""
	}
	return f.Holder.Path
}

// lineHas reports whether the line that a finding names contains a text.
func lineHas(t *testing.T, script string, f *finding, want string) bool {
	t.Helper()
	if f.Place.Line == nil {
		return false
	}
	lines := strings.Split(script, "\n")
	n := int(f.Place.Line.Line)
	return n > 0 && n <= len(lines) && strings.Contains(lines[n-1], want)
}
