package main

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// predict --gpus N gives a plain command N phantom devices, each with a breakdown of its own. If a script uses
// DataParallel on a single device, one reason of the confidence explains what DataParallel does.
func TestPredictGPUs(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--gpus", "2", "--", interpreter, caseFile(t, "two_gpus.py"))
	if r.code != exitDone || len(doc.Runs) != 1 || len(doc.Runs[0].Ranks) != 2 || len(doc.Runs[0].Others) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	p := &doc.Runs[0]
	other, sum := p.Others[0], int64(0)
	for _, c := range other.Categories {
		sum += c.Bytes
	}
	if *p.Device == other.Device || sum != other.AllocatedBytes || sum == 0 || p.Params["gpus"] != 2. {
		t.Errorf("%s beside %s with %d of %d bytes", other.Device, *p.Device, sum, other.AllocatedBytes)
	}
	// glibc then fills memory with a fixed byte, so that a value which NCCL leaves unset is never a valid address by
	// chance.
	t.Setenv("MALLOC_PERTURB_", "165")
	r = dpsight(t, t.TempDir(), "predict", "-v", "--gpus", "2", "--", interpreter, caseFile(t, "dataparallel.py"))
	for _, device := range []string{"(cuda:0)", "(cuda:1)"} {
		if r.code != exitDone || strings.Count(r.stdout, device+", after event") != 1 {
			t.Errorf("exit code %d, no breakdown of %s\n%s%s", r.code, device, r.stdout, r.stderr)
		}
	}
	r, doc = predictDocument(t, t.TempDir(), nil, "--", interpreter, caseFile(t, "dataparallel.py"))
	if r.code != exitDone || doc.Runs[0].Confidence.Level != schemas.Close || !strings.Contains(
		strings.Join(doc.Runs[0].Confidence.Reasons, "\n"), "torch.nn.DataParallel splits each batch over all devices") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// A script that uses a missing device gets an error that names the option to add it.
func TestPredictDeviceThatIsNotThere(t *testing.T) {
	testkit.Rest(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", python(t), caseFile(t, "two_gpus.py"))
	if r.code != exitFailed || len(doc.Runs) != 1 || doc.Runs[0].Fits != nil ||
		!strings.Contains(r.stderr, "hint: the script uses a GPU that does not exist; dpsight predict --gpus N") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// If a script checks at its end that the loss is low, the prediction fails, since the loss is unknown. The error
// suggests --steps, which ends the script before the check. With --steps the prediction succeeds.
func TestPredictBeforeACheckOfALoss(t *testing.T) {
	testkit.Rest(t)
	const checked = `
import torch
m = torch.nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(m.parameters(), lr=0.1)
for i in range(5):
    loss = (m(torch.randn(16, 512).cuda()) ** 2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
assert loss.item() < 0.05
`
	interpreter, script := python(t), scriptFile(t, checked)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", interpreter, script)
	if r.code != exitFailed || len(doc.Runs) != 1 || doc.Runs[0].Fits != nil ||
		!strings.Contains(r.stderr, "--steps N ends the script after N steps, before a check at its end") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r, doc = predictDocument(t, t.TempDir(), nil, "--steps", "4", "--", interpreter, script)
	if r.code != exitDone || doc.Runs[0].Fits == nil || !*doc.Runs[0].Fits {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// The prediction of a script that calls torch.compile but compiles nothing is still exact expected.
func TestPredictCompiledNothing(t *testing.T) {
	testkit.Rest(t)
	r, doc := predictDocument(t, t.TempDir(), nil, "--", python(t), caseFile(t, "compile_unused.py"))
	if r.code != exitDone || doc.Runs[0].Confidence.Level != schemas.ExactExpected {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
