package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"

	"github.com/dpsight/dpsight/collect/testkit"
)

// failing is a script that trains with too large batches in the steps that its arguments name, and then with smaller
// ones. An argument is step:room, where room is how many MiB more the process may reserve in that step. After each
// failure it prints what the failure left behind.
const failing = `
import sys
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

plan = [tuple(map(int, a.split(":"))) for a in sys.argv[2:]]
width = 512
model = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).cuda()
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
total = torch.cuda.get_device_properties(0).total_memory

class Batches(IterableDataset):
    def __iter__(self):
        for step in range(plan[-1][0] + 2):
            for at, room in plan:
                if at == step:
                    yield torch.empty(65536, width), torch.zeros(65536, dtype=torch.long), room
            yield torch.empty(1024, width), torch.zeros(1024, dtype=torch.long), 0

def train():
    for data, labels, room in DataLoader(Batches(), batch_size=None):
        optimizer.zero_grad()
        data, labels = data.cuda(), labels.cuda()
        if room:
            torch.cuda.empty_cache()
            before = torch.cuda.memory_allocated()
            torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (room << 20)) / total)
        try:
            loss = F.cross_entropy(model(data), labels)
            loss.backward()
            optimizer.step()
        except torch.OutOfMemoryError:
            if sys.argv[1] == "fatal":
                raise
        if room:
            torch.cuda.set_per_process_memory_fraction(1.0)
            loss = None
            optimizer.zero_grad()
            batch = data.nbytes + labels.nbytes
            del data, labels
            print("left", torch.cuda.memory_allocated() - before + batch, flush=True)
train()
`

// Requests for memory fail in an instrumented step, in bare steps, and outside the recorded steps. Each time the
// breakdown names what held the memory and which module made the request. Memory that the failure held is released as
// it would be without dpsight.
func TestFailuresInEveryStep(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	const mib = 1 << 20
	places := []struct {
		room        int // MiB
		phase       string
		module      string
		activations int64 // MiB
		// MiB: gradients of activations, which a list of blocks does not distinguish from other gradients
		gradients int64
	}{
		{room: 100, phase: "forward", module: "0"},
		{room: 600, phase: "forward", module: "1", activations: 128 + 512},
		{room: 1600, phase: "backward", module: "2", activations: 128 + 512 + 512, gradients: 128},
	}
	flags := []string{"--record-steps", "20", "--window-steps", "2"}
	for _, mode := range []string{"caught", "fatal"} {
		steps, from, status, code := []int64{4, 5, 12, 30}, 0, schemas.StatusOK, exitDone
		if mode == "fatal" {
			steps, from, status, code = []int64{30}, 2, schemas.StatusOOM, exitFailed
		}
		args := []string{mode}
		for _, step := range steps {
			for _, p := range places[from:] {
				args = append(args, fmt.Sprintf("%d:%d", step, p.room))
			}
		}
		e := record(t, failing, flags, args, "", nil)
		e.expect(t, status, code)
		for line := range strings.Lines(e.logged(t)) {
			if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "left "))); err != nil || n > 0 {
				t.Errorf("%s: %s", mode, line)
			}
		}
		r, err := schemas.ReadIngestReport(e.dir)
		if err != nil || len(r.OOMs) != len(args)-1 || r.Devices[0].AmbiguousTags != 0 || r.Cost[0].Windows != 1 {
			t.Fatalf("%s: %+v, %v", mode, r, err)
		}
		findings := findingsOf(t, e.store)["train"]
		for i, o := range r.OOMs {
			p, step := places[from+i%(len(places)-from)], steps[i/(len(places)-from)]
			if o.Seq == 0 || o.Step != step || o.Phase != p.phase || o.Module != p.module ||
				o.RequestedBytes != 512*mib || o.Fatal != (mode == "fatal") {
				t.Errorf("%s, failure %d: %+v", mode, i+1, o)
				continue
			}
			var doc breakdownDoc
			out := must(t, "", "analyze", "breakdown", "--store", e.store, "--at", fmt.Sprintf("oom=%d", i+1),
				"--format", "json").stdout
			if err := json.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatal(err)
			}
			held := map[string]int64{}
			d := &doc.Runs[0].Devices[0]
			for _, c := range d.Categories {
				held[c.Category] = c.Held
			}
			nobody := held["other"] + held["untraced"]
			if step == 30 {
				nobody -= p.gradients * mib
			}
			if held["inputs"] < 128*mib || held["activations"] < p.activations*mib ||
				held["optimizer_state"] < 16*mib || nobody > d.Allocated/100 {
				t.Errorf("%s, failure %d, in step %d: %v of %d", mode, i+1, step, held, d.Allocated)
			}
		}
		for _, f := range findings {
			if f.ID == "oom" && f.figure(t, "reserved") != f.figure(t, "allocated")+f.figure(t, "cached and free") {
				t.Errorf("%s: %+v", mode, f)
			}
		}
	}
}

// logged returns the script's output.
func (e ending) logged(t *testing.T) string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(e.dir, collect.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}
