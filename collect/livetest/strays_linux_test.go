package livetest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// mostWalkMS is the most milliseconds that one walk over a script's names, of about a thousand objects, may take.
// mostWalkMS is a hundred times a walk's usual time.
const mostWalkMS = 50

// The tables have each tensor that a script keeps by a name of its own under that name. The agent's search for these
// tensors runs no code of the script.
func TestStrays(t *testing.T) {
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "strays.py"))
	if r.manifest.Status != schemas.StatusOK || r.stderr == "" {
		t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
	}
	expectConserved(t, r.dir, r.report)
	lines := linesOf(t, r.stdout, "STRAYS ")
	var said struct {
		Planted map[string]storage
		Ran     []string
		MS      float64
	}
	if len(lines) != 1 || json.Unmarshal([]byte(lines[0]), &said) != nil {
		t.Fatalf("%q", lines)
	}
	if len(said.Ran) > 0 {
		t.Errorf("was run: %q", said.Ran)
	}
	t.Logf("a walk takes %.3f ms", said.MS)
	if said.MS <= 0 || said.MS > mostWalkMS {
		t.Errorf("a walk takes %.3f ms", said.MS)
	}
	steps, err := schemas.Steps.Read(r.dir)
	if err != nil || len(steps) != 7 || steps[4].Instrumented || len(said.Planted) < 10 {
		t.Fatalf("%d steps, %v; %d tensors", len(steps), err, len(said.Planted))
	}
	blocks := countedAt(t, r.dir, steps[6].EndSeq)
	for name, s := range said.Planted {
		i := slices.IndexFunc(blocks, func(b counted) bool { return b.block.Address == s[0] })
		if i < 0 || blocks[i].block.RequestedBytes != int64(s[1]) {
			t.Errorf("%s: no block of %d bytes at %#x", name, s[1], s[0])
			continue
		}
		if b := blocks[i]; b.category != schemas.Script || b.evidence != schemas.Tagged || b.name != name {
			t.Errorf("%s is %s by %s, under the name %q", name, b.category, b.evidence, b.name)
		}
		if name == "closure of hooked.<locals>.hook" && blocks[i].module != "1" {
			t.Errorf("%s is of the module %q", name, blocks[i].module)
		}
	}
}
