package livetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

// A held is a storage that is alive when backward begins, according to a run's tables or to torch's MemTracker.
type held struct {
	kind  string // one of MemTracker's names
	bytes int64  // rounded up to the allocator's smallest block
	name  string
}

// trackerKinds has MemTracker's names for dpsight's categories. Tensors of all other categories count as MemTracker's
// activations.
var trackerKinds = map[string]string{schemas.Parameters: "Parameter", schemas.Buffers: "Buffer",
	schemas.OptimizerState: "Optstate",
	schemas.Gradients:      "Gradient"}

// Torch's MemTracker counts tensors as operators make them and storages die. MemTracker does not use the allocator's
// events. At the start of backward, a run under MemTracker must find the same storages alive as the tables of a
// recorded run: of the model, of the optimizer and of what forward left.
func TestMemTrackerAgrees(t *testing.T) {
	python := testkit.Python(t)
	for _, method := range []string{"vanilla", "dpsgd"} {
		t.Run(method, func(t *testing.T) {
			testkit.Part(t, method == "vanilla")
			t.Parallel()
			given := map[string]string{"method": method, "preset": "small", "seq_len": "256", "num_iter": "1",
				"warmup_iter": "2"}
			params, err := experiments.Resolve(given)
			if err != nil {
				t.Fatal(err)
			}
			takeSlot(t)
			// the first step that begins with optimizer state, and with gradients if the script keeps them
			const step = 1
			recorded := heldByTables(t, recordExperiment(t, python, params), step)
			tracked := heldByTracker(t, python, params, step)
			for _, kind := range []string{"Parameter", "Buffer", "Optstate", "Gradient", "Activation"} {
				expectSameHeld(t, kind, recorded, tracked)
			}
		})
	}
}

func expectSameHeld(t *testing.T, kind string, recorded, tracked []held) {
	t.Helper()
	of := func(all []held) (out []held, sum int64) {
		for _, h := range all {
			if h.kind == kind {
				out, sum = append(out, h), sum+h.bytes
			}
		}
		return out, sum
	}
	tables, inTables := of(recorded)
	tracker, inTracker := of(tracked)
	if kind != "Buffer" && kind != "Gradient" && inTracker < 1<<20 {
		t.Errorf("%s: MemTracker finds only %d bytes", kind, inTracker)
	}
	onlyTables, onlyTracker := without(tables, tracker), without(tracker, tables)
	t.Logf("%s: %d storages, %d bytes in the tables; %d, %d in MemTracker", kind, len(tables), inTables, len(tracker),
		inTracker)
	var unmatched int64
	for i, list := range [][]held{onlyTables, onlyTracker} {
		for _, h := range list {
			unmatched += h.bytes
			t.Logf("%s: only in %s: %d bytes, %s", kind, []string{"the tables", "MemTracker"}[i], h.bytes, h.name)
		}
	}
	if 1000*unmatched > inTracker {
		t.Errorf("%s: %d of %d bytes are storages that only one of the two knows", kind, unmatched, inTracker)
	}
}

// without returns the storages of a list that have no partner of the same size in the other list.
func without(list, other []held) (out []held) {
	count := map[int64]int{}
	for _, h := range other {
		count[h.bytes]++
	}
	for _, h := range list {
		if count[h.bytes]--; count[h.bytes] < 0 {
			out = append(out, h)
		}
	}
	return out
}

// recordExperiment records a built-in experiment on the phantom GPU.
func recordExperiment(t *testing.T, python string, params map[string]any) (dir string) {
	t.Helper()
	var stderr output
	r, err := collect.Run(t.Context(), collect.Experiment{Store: t.TempDir(), Name: "live", Params: params, LikeAGPU: true,
		Python: python, Device: "phantom",
		Grace: 2 * time.Second, Timeout: hangLimit, Stdout: &output{}, Stderr: &stderr, Environ: environment()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Manifest.Status != schemas.StatusOK {
		t.Fatalf("status %s (%s)\n%s", r.Manifest.Status, r.Manifest.Reason, tail(stderr.String()))
	}
	report, err := ingest.Run(r.Dir, ingest.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	expectConserved(t, r.Dir, report)
	return r.Dir
}

// heldByTables lists the blocks that are live when a step's backward begins. heldByTables leaves out library
// workspaces, since workspaces are not tensors.
func heldByTables(t *testing.T, dir string, step int64) (out []held) {
	t.Helper()
	phases, err := schemas.Phases.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(phases, func(p schemas.Phase) bool {
		return p.Step == step && p.Phase == schemas.PhaseBackward
	})
	if i < 0 {
		t.Fatalf("step %d has no backward", step)
	}
	for _, b := range countedAt(t, dir, phases[i].BeginSeq) {
		if b.category == schemas.Workspace {
			continue
		}
		kind, ok := trackerKinds[b.category]
		if !ok {
			kind = "Activation"
		}
		const least = 512
		size := (b.block.RequestedBytes + least - 1) / least * least
		out = append(out, held{kind, size, fmt.Sprintf("%s %s of module %q, born in %s", b.category, b.name, b.module,
			b.block.Phase)})
	}
	return out
}

// counted is a block that is live at a moment, with the owner under which the breakdown counts the block.
type counted struct {
	block                            *schemas.Allocation
	category, evidence, name, module string
}

// countedAt lists the blocks that are live just after an event.
func countedAt(t *testing.T, dir string, seq int64) (out []counted) {
	t.Helper()
	allocations, err := schemas.Allocations.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := schemas.Owners.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := schemas.Modules.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := map[int64]string{}
	for _, m := range modules {
		path[m.ID] = m.Path
	}
	first := map[int64]*schemas.Owner{}
	for i := range owners {
		o := &owners[i]
		if f := first[o.AllocID]; o.HoldsAt(seq) &&
			(f == nil || schemas.Precedence(o.Category) < schemas.Precedence(f.Category)) {
			first[o.AllocID] = o
		}
	}
	for i := range allocations {
		a := &allocations[i]
		if o := first[a.AllocID]; a.LiveAt(seq) && o != nil {
			out = append(out, counted{a, o.Category, o.Evidence, o.Name, path[o.Module]})
		} else if a.LiveAt(seq) {
			t.Errorf("block %d has no owner after event %d", a.AllocID, seq)
		}
	}
	return out
}

// heldByTracker lists what MemTracker finds alive when a step's backward begins, in a run without dpsight.
func heldByTracker(t *testing.T, python string, params map[string]any, step int) (out []held) {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "experiments"))
	if err != nil {
		t.Fatal(err)
	}
	flags := experiments.Args(params)[2:] // without -m and the program's name
	argv := append([]string{python, script(t, "tracked.py"), folder}, flags...)
	lines := linesOf(t, aloneOnPhantom(t, python, argv), "TRACKED ")
	if len(lines) <= step {
		t.Fatalf("%d backwards", len(lines))
	}
	var found struct {
		Total    int64
		Storages [][3]any
	}
	if err := json.Unmarshal([]byte(lines[step]), &found); err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, s := range found.Storages {
		h := held{s[0].(string), int64(s[1].(float64)), s[2].(string)}
		if h.kind == "Temp" || h.kind == "Other" {
			h.kind = "Activation"
		}
		out, sum = append(out, h), sum+h.bytes
	}
	if sum != found.Total {
		t.Errorf("MemTracker's storages sum to %d bytes, it counts %d", sum, found.Total)
	}
	return out
}

// linesOf returns the rest of each line that begins with a word.
func linesOf(t *testing.T, text, word string) (out []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			out = append(out, rest)
		}
	}
	return out
}

// aloneOnPhantom runs a command on the phantom GPU without dpsight, and returns what it printed.
func aloneOnPhantom(t *testing.T, python string, argv []string) string {
	t.Helper()
	library, err := phantom.Build(t.Context(), phantom.Options{Python: python})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hangLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = library.Env(environment())
	var stdout, stderr output
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, tail(stderr.String()))
	}
	return stdout.String()
}
