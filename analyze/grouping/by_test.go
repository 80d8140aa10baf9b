package grouping

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// crossings returns each dimension alone, and all pairs of dimensions.
func crossings() (all [][]Dimension) {
	for _, a := range Dimensions {
		all = append(all, []Dimension{a})
		for _, b := range Dimensions {
			if a != b {
				all = append(all, []Dimension{a, b})
			}
		}
	}
	return all
}

// checkBy compares a breakdown by dimensions with the plain breakdown of the same moment. checkBy returns the
// differences.
func checkBy(plain *memory.DeviceBreakdown, d *DeviceBy, by By) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	sum := func(rows []ByRow) (bytes, tagged, phaseOnly, unknown int64) {
		for _, r := range rows {
			bytes, tagged, phaseOnly = bytes+r.Bytes, tagged+r.TaggedBytes, phaseOnly+r.PhaseOnlyBytes
			if r.Key == nil && r.Others == 0 {
				unknown += r.Bytes
			}
			if r.TaggedBytes+r.LifetimeBytes+r.PhaseOnlyBytes != r.Bytes || r.Others == 1 || r.Key != nil &&
				(r.Others > 0 || *r.Key == "") || r.Bytes > 0 && r.Blocks == 0 {
				fail("%+v", r)
			}
		}
		// more rows are for the others, and for values that are unknown or absent
		if by.Top > 0 && len(rows) > by.Top+1+len(aside) {
			fail("%d rows, and at most %d are asked for", len(rows), by.Top)
		}
		return bytes, tagged, phaseOnly, unknown
	}
	var tagged, phaseOnly int64
	for _, c := range plain.Categories {
		tagged, phaseOnly = tagged+c.TaggedBytes, phaseOnly+c.PhaseOnlyBytes
	}
	bytes, t, p, unknown := sum(d.Rows)
	if bytes != plain.AllocatedBytes || t != tagged || p != phaseOnly || unknown != d.UnknownBytes[by.Dimensions[0]] {
		fail("rows sum to %d, %d tagged, %d by phase, %d unknown; allocated %d, %d, %d, %v", bytes, t, p, unknown,
			plain.AllocatedBytes, tagged, phaseOnly, d.UnknownBytes)
	}
	if len(by.Dimensions) == 1 {
		if d.Columns != nil || slices.ContainsFunc(d.Rows, func(r ByRow) bool { return r.Rows != nil }) {
			fail("one dimension has no columns")
		}
	} else if bytes, _, _, unknown := sum(d.Columns); bytes != plain.AllocatedBytes ||
		unknown != d.UnknownBytes[by.Dimensions[1]] {
		fail("columns sum to %d, %d unknown", bytes, unknown)
	}
	for _, r := range d.Rows {
		if bytes, t, p, _ := sum(r.Rows); len(by.Dimensions) > 1 && (bytes != r.Bytes || t != r.TaggedBytes ||
			p != r.PhaseOnlyBytes) {
			fail("what is in %+v sums to %d", r, bytes)
		}
		if by.Dimensions[0] == DimensionCategory && r.Key != nil {
			if c := plain.Category(*r.Key); c.Bytes != r.Bytes || c.Blocks != r.Blocks && *r.Key != schemas.Slack ||
				c.TaggedBytes != r.TaggedBytes {
				fail("%s: %+v, and the plain breakdown has %+v", *r.Key, r, c)
			}
		}
	}
	if m := d.ModuleBytes; (m != nil) != slices.ContainsFunc(by.Dimensions, Dimension.NeedsModule) {
		fail("modules are known: %v", m)
	} else if m != nil && m.OwnerBytes+m.NameBytes+m.BirthBytes+m.NoneBytes+m.SharedBytes != plain.AllocatedBytes {
		fail("%+v does not sum to %d", *m, plain.AllocatedBytes)
	}
	return wrong
}

// plainAt returns a breakdown without the maxima of the categories. Computing the maxima would need a sweep over the
// whole run.
func plainAt(l *memory.Ledger, seq int64) memory.DeviceBreakdown {
	d := memory.DeviceBreakdown{At: memory.Moment{Event: seq},
		Categories: make([]memory.CategoryBytes, memory.NCategories)}
	for i, a := range l.Allocs {
		if a.LiveAt(seq) {
			l.Count(d.Categories, i, seq)
		}
	}
	for i := range d.Categories {
		d.Categories[i].Category = schemas.Categories[i]
		d.AllocatedBytes += d.Categories[i].Bytes
	}
	return d
}

// withDetail gives births to random blocks, and gives names and modules to random owners.
func withDetail(r *rand.Rand, in *schemas.Tables) {
	paths := []string{"", "blocks", "blocks.0", "blocks.0.q", "blocks.1", "blocks.1.q", "head"}
	for i, p := range paths {
		in.Modules = append(in.Modules, schemas.Module{ID: int64(i) + 1, Path: p, Class: []string{"Block",
			"Linear"}[i%2], Role: "other", ParameterBytes: 1})
	}
	for i := range in.Allocations {
		a := &in.Allocations[i]
		a.Module, a.Step, a.Phase, a.Stack = r.Int64N(9), r.Int64N(4)-1, []string{"", "forward", "backward"}[r.IntN(3)],
			r.Int64N(3)
		a.Op = []string{"", "mm"}[r.IntN(2)]
	}
	for i := range in.Owners {
		in.Owners[i].Module, in.Owners[i].Name = r.Int64N(20), []string{"", "blocks.0.q.weight", "x", "DivBackward0",
			"head.bias.exp_avg"}[r.IntN(5)]
	}
	in.Stacks = []schemas.StackFrame{{Stack: 1, Function: "f", File: "/a/b/c.py", Line: 3},
		{Stack: 1, Depth: 1, Function: "g", File: "c.py", Line: 4}}
}

func TestRowsSumToAllocated(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		in, allocated := fixture.RandomRun(r)
		withDetail(r, &in)
		for p, counts := range allocated {
			l := memory.NewLedger(&in, p)
			for _, dims := range crossings() {
				by := By{Dimensions: dims, Depth: r.IntN(3), Fold: r.IntN(2) == 0, Top: r.IntN(4)}
				seq := r.Int64N(int64(len(counts)))
				plain := memory.BreakdownAt(&in, p, l, memory.MomentOf(&in, p, seq), counts[seq])
				d := deviceBy(&in, p, l, &plain, by)
				for _, w := range checkBy(&plain, &d, by) {
					t.Errorf("seed %d, %v, event %d, %+v: %s", seed, p, seq, by, w)
				}
			}
		}
	}
}

// At the end of every phase of the recordings in the repository, the rows sum to the allocated bytes that the replay
// finds.
func TestRowsOfRecordings(t *testing.T) {
	runs, damaged, err := store.Open(filepath.Join("..", "..", "examples", "headline")).Runs()
	if err != nil || len(damaged) > 0 || len(runs) == 0 {
		t.Fatalf("%d runs in examples/headline, damaged %v, %v", len(runs), damaged, err)
	}
	all := crossings()
	n := 0
	for _, r := range runs {
		if r.Manifest.Bare {
			continue
		}
		tables, err := store.Load(r, schemas.WantMemory|schemas.WantTimes|schemas.WantEvents|schemas.WantDetail)
		if err != nil {
			t.Fatal(err)
		}
		in := *tables
		for _, p := range identity.Places(&in) {
			l := memory.NewLedger(&in, p)
			for i := range in.Phases {
				f := &in.Phases[i]
				if f.Rank != p.Rank || f.Device != p.Device || f.EndSeq == 0 {
					continue
				}
				plain := plainAt(l, f.EndSeq)
				if plain.AllocatedBytes != schemas.OrZero(f.AllocatedEnd) {
					t.Errorf("%s, event %d: %d bytes, replay says %d", r.Manifest.Name, f.EndSeq, plain.AllocatedBytes,
						f.AllocatedEnd)
				}
				by := By{Dimensions: all[n%len(all)], Depth: n % 4, Fold: n%2 == 0, Top: n % 7}
				n++
				d := deviceBy(&in, p, l, &plain, by)
				for _, w := range checkBy(&plain, &d, by) {
					t.Errorf("%s, event %d, %+v: %s", r.Manifest.Name, f.EndSeq, by, w)
				}
			}
			// If the modules were unknown at the peak, the test would prove nothing.
			f, err := memory.FindMoment(&in, p, memory.At{})
			if err != nil {
				t.Fatal(err)
			}
			plain := memory.BreakdownAt(&in, p, l, f.At, f.Allocated)
			d := deviceBy(&in, p, l, &plain, By{Dimensions: []Dimension{DimensionModule}})
			if d.UnknownBytes[DimensionModule]*100 > d.AllocatedBytes {
				t.Errorf("%s: no module is known of %d of %d bytes at the peak", r.Manifest.Name,
					d.UnknownBytes[DimensionModule], d.AllocatedBytes)
			}
		}
	}
	if n < len(all) {
		t.Errorf("only %d moments for %d crossings", n, len(all))
	}
}

// If torch keeps a workspace, no module owns it, not even the module that happened to run first. If torch allocates a
// workspace for a single call, the called module owns it.
func TestWorkspacesAreShared(t *testing.T) {
	in := fixture.Hooked()
	in.Modules = []schemas.Module{{ID: 1, Path: "blocks.0.q", Class: "Linear", Role: "attention"}}
	// The workspace requests 1,000 bytes and gets a block of 1,024.
	in.Owners[0] = schemas.Owner{AllocID: 1, Category: schemas.Workspace, BeginSeq: 1, Evidence: schemas.Lifetime,
		Module: 1}
	for i := range in.Allocations {
		in.Allocations[i].Module = 1
	}
	for _, c := range []struct {
		freed    int64
		evidence schemas.Evidence
		want     int64
	}{{0, schemas.Lifetime, 1024}, {6, schemas.Lifetime, 1024}, {2, schemas.Lifetime, 0}, {0, schemas.Tagged, 0}} {
		in.Allocations[0].FreeRequestedSeq, in.Owners[0].Evidence = c.freed, c.evidence
		at := int64(4)
		if c.freed == 2 {
			at = 1 // while the call with this workspace runs
		}
		for _, d := range []Dimension{DimensionModule, DimensionClass, DimensionRole} {
			run, err := BreakdownBy(in, memory.At{Event: &at}, By{Dimensions: []Dimension{d}, Top: 1})
			if err != nil {
				t.Fatal(err)
			}
			shared := int64(0)
			for _, r := range run.Devices[0].Rows {
				if r.Key != nil && *r.Key == schemas.SharedByModules {
					if shared = r.Bytes; r.Modules != 0 {
						t.Errorf("%s: %+v is of no module", d, r)
					}
				}
			}
			if m := run.Devices[0].ModuleBytes; shared != c.want || m.SharedBytes != c.want ||
				run.Devices[0].UnknownBytes[d] != 0 {
				t.Errorf("%s, freed at %d, %s: %d bytes are shared, %+v, want %d", d, c.freed, c.evidence, shared, m,
					c.want)
			}
		}
	}
}

// A block has an op only if its category is activations. Any other block has the value "not an activation", which does
// not count as unknown.
func TestOpsOfWhatHasNone(t *testing.T) {
	in := fixture.Hooked()
	in.Owners[1].Name = "GeluBackward0"
	run, err := BreakdownBy(in, memory.At{}, By{Dimensions: []Dimension{DimensionOp}})
	if err != nil {
		t.Fatal(err)
	}
	d := run.Devices[0]
	var rows []string
	for _, r := range d.Rows {
		rows = append(rows, fmt.Sprintf("%s %d", *r.Key, r.Bytes))
	}
	if want := []string{"GeluBackward0 2048", "not an activation 2048"}; !slices.Equal(rows, want) ||
		d.UnknownBytes[DimensionOp] != 0 || len(d.Warnings) > 0 {
		t.Errorf("%v, want %v; unknown %v, %v", rows, want, d.UnknownBytes, d.Warnings)
	}
}

func TestModuleOfBlock(t *testing.T) {
	in := schemas.Tables{Modules: []schemas.Module{{ID: 1, Class: "Net", ParameterBytes: 4},
		{ID: 2, Path: "body", Class: "Sequential"}, {ID: 3, Path: "body.0", Class: "Linear"},
		{ID: 4, Class: "Loss"}, {ID: 5, Path: "twice", Class: "A"}, {ID: 6, Path: "twice", Class: "B"},
		{ID: 7, Rank: 1, Path: "other.rank"}}}
	owner := func(c schemas.Category, name string, module int64) schemas.Owner {
		return schemas.Owner{Category: c, Name: name, Module: module, Evidence: schemas.Tagged}
	}
	for _, c := range []struct {
		what   string
		birth  int64
		owners []schemas.Owner
		want   int64 // 0 is unknown
		how    func(*memory.ModuleBytes) int64
	}{
		{"the owner's own", 2, []schemas.Owner{owner(schemas.Activations, "MulBackward0", 3)}, 3,
			func(m *memory.ModuleBytes) int64 { return m.OwnerBytes }},
		{"the first owner's", 0, []schemas.Owner{owner(schemas.Outputs, "", 2), owner(schemas.Activations, "", 3)}, 3,
			func(m *memory.ModuleBytes) int64 { return m.OwnerBytes }},
		{"a parameter's", 2, []schemas.Owner{owner(schemas.Gradients, "body.0.weight", 0)}, 3,
			func(m *memory.ModuleBytes) int64 { return m.NameBytes }},
		{"an optimizer's state's", 2, []schemas.Owner{owner(schemas.OptimizerState, "body.0.weight.exp_avg", 0)}, 3,
			func(m *memory.ModuleBytes) int64 { return m.NameBytes }},
		{"the nearest enclosing one", 3, []schemas.Owner{owner(schemas.Parameters, "body.7.list.1", 0)}, 2,
			func(m *memory.ModuleBytes) int64 { return m.NameBytes }},
		{"the root's", 3, []schemas.Owner{owner(schemas.Parameters, "token", 0)}, 1,
			func(m *memory.ModuleBytes) int64 { return m.NameBytes }},
		{"an autograd node's name", 3, []schemas.Owner{owner(schemas.Activations, "DivBackward0", 0)}, 3,
			func(m *memory.ModuleBytes) int64 { return m.BirthBytes }},
		{"two of a path", 3, []schemas.Owner{owner(schemas.Parameters, "twice.weight", 0)}, 3,
			func(m *memory.ModuleBytes) int64 { return m.BirthBytes }},
		{"no owner", 2, nil, 2, func(m *memory.ModuleBytes) int64 { return m.BirthBytes }},
		{"another rank's", 7, nil, 0, func(m *memory.ModuleBytes) int64 { return m.NoneBytes }},
		{"nothing", 0, []schemas.Owner{owner(schemas.Activations, "", 0)}, 0,
			func(m *memory.ModuleBytes) int64 { return m.NoneBytes }},
	} {
		run := in
		run.Allocations = []schemas.Allocation{{AllocID: 1, BlockBytes: 512, Module: c.birth}}
		for _, o := range c.owners {
			o.AllocID = 1
			run.Owners = append(run.Owners, o)
		}
		var known memory.ModuleBytes
		m, how := memory.NewModuleIndex(&run, 0).Module(memory.NewLedger(&run, identity.Place{}), 0, 0, &known)
		*how = 512
		if got := c.how(&known); (m == nil) != (c.want == 0) || m != nil && m.ID != c.want || got != 512 {
			t.Errorf("%s: %+v, %+v, want module %d", c.what, m, known, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	for bytes, want := range map[int64]string{0: "under 512 B", 511: "under 512 B", 512: "512 B–1 KiB",
		1 << 20: "1–2 MiB", 1<<30 - 1: "512 MiB–1 GiB", 1 << 30: "1–2 GiB", 3 << 40: "2–4 TiB",
		1 << 51: "2048–4096 TiB"} {
		if got := sizeClass(bytes).Text; got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
	in := fixture.Hooked()
	in.Modules = []schemas.Module{{ID: 1, Path: "blocks.3.attn.q"}, {ID: 2, Path: "blocks.4.attn.q"},
		{ID: 3, Class: "Net"}, {ID: 4, Path: "blocks.3", Class: "Block"}, {ID: 5, Path: "blocks.4", Class: "Block"}}
	in.Stacks = []schemas.StackFrame{{Stack: 1, Function: "linear", File: "/lib/torch/nn/functional.py", Line: 7},
		{Stack: 1, Function: "_call_impl", File: "/lib/torch/nn/modules/module.py", Line: 9},
		{Stack: 1, Function: "forward", File: "model.py", Line: 3}}
	in.Lines = []schemas.Line{{Line: 1, File: "model.py", Number: 3}, {Rank: 1, Line: 2, File: "model.py", Number: 4}}
	block := &schemas.Allocation{AllocSeq: 1, Phase: schemas.PhaseForward, Step: 2, Stack: 1}
	for _, c := range []struct {
		d    Dimension
		by   By
		a    *schemas.Allocation
		m    int
		o    *schemas.Owner
		want string
	}{
		{DimensionModule, By{}, block, 0, nil, "blocks.3.attn.q"},
		{DimensionModule, By{Depth: 2}, block, 0, nil, "blocks.3"},
		{DimensionModule, By{Fold: true}, block, 0, nil, "blocks.*.attn.q"},
		{DimensionModule, By{Depth: 2, Fold: true}, block, 1, nil, "blocks.*"},
		{DimensionModule, By{Depth: 2, Fold: true}, block, 2, nil, "(Net)"},
		{DimensionPhase, By{}, block, 0, nil, schemas.PhaseForward},
		{DimensionPhase, By{}, &schemas.Allocation{}, 0, nil, BeforeRecording},
		{DimensionStep, By{}, block, 0, nil, "2"},
		{DimensionStep, By{}, &schemas.Allocation{AllocSeq: 1, Step: -1, Phase: schemas.PhaseSetupModel}, 0, nil,
			beforeFirstStep},
		{DimensionStep, By{}, &schemas.Allocation{AllocSeq: 1, Step: -1}, 0, nil, BetweenWindows},
		{DimensionPhase, By{}, &schemas.Allocation{AllocSeq: 1, Step: -1}, 0, nil, BetweenWindows},
		{DimensionStep, By{}, &schemas.Allocation{Step: -1}, 0, nil, BeforeRecording},
		{DimensionOp, By{}, block, 0, nil, ""},
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.Activations, Name: "GeluBackward0"},
			"GeluBackward0"},
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.Activations, Name: "TiledNormBackward"},
			"TiledNormBackward"},
		// The script itself tagged this block.
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.Activations, Name: "cache"}, ""},
		// The name net.Backward0 is a parameter's, though it looks like a node's.
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.Parameters, Name: "net.Backward0"},
			NotAnActivation},
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.ForwardTemporaries, Evidence: schemas.Lifetime},
			NotAnActivation},
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.ForwardTemporaries, Evidence: schemas.ByPhase},
			""},
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.Other, Evidence: schemas.Lifetime}, ""},
		{DimensionOp, By{}, block, 0, &schemas.Owner{Category: schemas.Untraced, Evidence: schemas.Lifetime}, ""},
		{DimensionOp, By{}, &schemas.Allocation{Op: "aten::mm"}, 0, nil, "aten::mm"},
		{DimensionName, By{}, block, 0, &schemas.Owner{Category: schemas.OptimizerState,
			Name: "blocks.3.attn.q.weight.exp_avg"}, "blocks.3.attn.q.weight.exp_avg"},
		{DimensionName, By{Fold: true}, block, 0, &schemas.Owner{Category: schemas.Gradients,
			Name: "blocks.3.attn.q.weight"}, "blocks.*.attn.q.weight"},
		{DimensionName, By{}, block, 1, &schemas.Owner{Category: schemas.Activations, Name: "AddmmBackward0"},
			"blocks.4.attn.q AddmmBackward0"},
		{DimensionName, By{Fold: true}, block, 1, &schemas.Owner{Category: schemas.Activations, Name: "AddmmBackward0"},
			"blocks.*.attn.q AddmmBackward0"},
		// The script itself tagged this block.
		{DimensionName, By{}, block, 1, &schemas.Owner{Category: schemas.Activations, Name: "cache"}, "cache"},
		{DimensionName, By{}, block, 1, &schemas.Owner{Category: schemas.Activations}, ""},
		{DimensionName, By{}, block, 1, nil, ""},
		{DimensionStack, By{}, block, 0, nil, "linear nn/functional.py:7 < forward model.py:3"},
		{DimensionStack, By{Depth: 1}, block, 0, nil, "linear nn/functional.py:7"},
		{DimensionStack, By{}, &schemas.Allocation{}, 0, nil, ""},
		{DimensionLine, By{}, &schemas.Allocation{Line: 1}, 0, nil, "model.py:3"},
		{DimensionLine, By{}, &schemas.Allocation{Line: 2}, 0, nil, ""},
		{DimensionLine, By{}, &schemas.Allocation{}, 0, nil, ""},
	} {
		if got := NewKeyer(&in, c.d, &c.by, identity.Place{}).Key(c.a, 0, &in.Modules[c.m], c.o).Text; got != c.want {
			t.Errorf("%s %+v: %q, want %q", c.d, c.by, got, c.want)
		}
	}
}

// If there were several searches for holders, the last one counts. The entries of a list fold into one holder.
// Parameters and other state of the model have "model and optimizer" as their holder.
func TestByHolder(t *testing.T) {
	in := fixture.Hooked()
	for i := range in.Allocations {
		in.Allocations[i].RequestedBytes, in.Allocations[i].BlockBytes = 1024, 1024
	}
	in.Report.Devices[0].PeakAllocatedBytes = 4 * 1024
	in.Owners = []schemas.Owner{{AllocID: 1, Category: schemas.Parameters, Evidence: schemas.Tagged}}
	in.Holders = []schemas.Holder{
		{AllocID: 1, Path: "global weight", Kind: schemas.HeldByPython},
		{AllocID: 2, Path: "local x of f()", Kind: schemas.HeldByPython},
		{AllocID: 2, Path: "global kept[0]", Kind: schemas.HeldByPython, ViewBytes: 4},
		{AllocID: 3, Path: "global kept[17]", Kind: schemas.HeldByPython, ViewBytes: 1023},
		{AllocID: 4, Kind: schemas.HeldByCpp}, {Rank: 1, AllocID: 4, Path: "another rank's"},
	}
	for fold, want := range map[bool]string{
		false: "global kept[0] 1024/1, global kept[17] 1024/1, C++ alone 1024/1, model and optimizer 1024/1",
		true:  "global kept[*] 2048/2, C++ alone 1024/1, model and optimizer 1024/1",
	} {
		run, err := BreakdownBy(in, memory.At{}, By{Dimensions: []Dimension{DimensionHolder}, Fold: fold})
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, r := range run.Devices[0].Rows {
			words = append(words, fmt.Sprintf("%s %d/%d", *r.Key, r.Bytes, r.Blocks))
		}
		if shown := run.Devices[0].Rows[0].ViewBytes; shown == nil || *shown != run.Devices[0].Rows[0].Bytes-1020 {
			t.Errorf("fold %v: views show %v", fold, shown)
		}
		if got := strings.Join(words, ", "); got != want {
			t.Errorf("fold %v: %s, want %s", fold, got, want)
		}
	}
}

func TestHolderName(t *testing.T) {
	for want, h := range map[string]memory.Holder{
		"global kept[*]": {Kind: schemas.HeldByPython, Path: "global kept[17]"},
		"global losses[*] → grad_fn": {Kind: schemas.HeldByGraph,
			Path: "global losses[3] → grad_fn → saved tensor of MulBackward0"},
		"C++ alone":                     {Kind: schemas.HeldByCpp},
		"global batch['ids'] → local x": {Kind: schemas.HeldByPython, Path: "global batch['ids'] → local x"},
		"global m.bank[*]":              {Kind: schemas.HeldByPython, Path: "global m.bank['7/conv']"},
		"global m.seen[*].out":          {Kind: schemas.HeldByPython, Path: "global m.seen['conv', 7].out"},
		"global texts[*]":               {Kind: schemas.HeldByPython, Path: "global texts['a long te…]"},
	} {
		if got := HolderName(&h); got != want {
			t.Errorf("%+v: %q, want %q", h, got, want)
		}
	}
}

func TestOthers(t *testing.T) {
	in := fixture.Hooked()
	in.Modules = []schemas.Module{{ID: 1, Path: "layers.2"}, {ID: 2, Path: "layers.10"}, {ID: 3, Path: "head"},
		{ID: 4, Path: "tail"}}
	for i := range in.Allocations {
		in.Allocations[i].Module, in.Allocations[i].RequestedBytes, in.Allocations[i].BlockBytes = int64(i)+1, 512, 512
	}
	in.Allocations[2].RequestedBytes, in.Allocations[2].BlockBytes = 1000, 1024
	in.Report.Devices[0].PeakAllocatedBytes = 3*512 + 1024
	rows := func(top int) string {
		run, err := BreakdownBy(in, memory.At{}, By{Dimensions: []Dimension{DimensionModule}, Top: top})
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, r := range run.Devices[0].Rows {
			name := fmt.Sprintf("%d others", r.Others)
			if r.Key != nil {
				name = *r.Key
			}
			words = append(words, fmt.Sprintf("%s %d/%d", name, r.Bytes, r.Blocks))
		}
		return strings.Join(words, ", ")
	}
	for top, want := range map[int]string{
		0: "head 1024/1, layers.2 512/1, layers.10 512/1, tail 512/1",
		3: "head 1024/1, layers.2 512/1, layers.10 512/1, tail 512/1", // "1 others" would save no row
		2: "head 1024/1, layers.2 512/1, 2 others 1024/2",
		1: "head 1024/1, 3 others 1536/3",
	} {
		if got := rows(top); got != want {
			t.Errorf("top %d: %s, want %s", top, got, want)
		}
	}
}

func TestWhatCannotBeBrokenDownBy(t *testing.T) {
	for dims, problem := range map[string]string{"module": "", "category, stack": "",
		"sze": `no dimension "sze"; there are category, module, `, "": `no dimension ""`,
		"step,step":    "dimension step is given twice",
		"step,size,op": "3 dimensions are given: at most 2 can be crossed"} {
		if _, err := ParseDimensions(dims); (err == nil) != (problem == "") || err != nil &&
			!strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, want %q", dims, err, problem)
		}
	}
	for _, c := range []struct {
		by      By
		problem string
	}{
		{By{Dimensions: []Dimension{DimensionStack}, Depth: 2, Top: 5}, ""},
		{By{Dimensions: []Dimension{DimensionStep}, Depth: 2}, "depth is of module paths and stacks, and the " +
			"breakdown is by step"},
		{By{Dimensions: []Dimension{DimensionModule}, Depth: -1}, "depth -1 is not a number of names, 0 or more"},
		{By{Dimensions: []Dimension{DimensionModule}, Top: -1}, "top -1 is not a number of rows, 0 or more"},
		{By{Dimensions: []Dimension{DimensionRole, DimensionStep}, Fold: true}, "modules or holders are to be " +
			"folded, and the breakdown is by role, step"},
	} {
		if err := c.by.Check(); (err == nil) != (c.problem == "") || err != nil && err.Error() != c.problem {
			t.Errorf("%+v: %v, want %q", c.by, err, c.problem)
		}
	}
	bare := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Bare: true, Status: schemas.StatusOK},
		Report: &schemas.IngestReport{}}
	run, err := BreakdownBy(bare, memory.At{}, By{Dimensions: []Dimension{DimensionRole}})
	var none *memory.NoEventsError
	if !errors.As(err, &none) || run.Devices == nil || run.RunID != "r" {
		t.Errorf("%+v, %v", run, err)
	}
	if run, err = BreakdownBy(fixture.Hooked(), memory.At{}, By{Dimensions: []Dimension{DimensionOp}}); err != nil ||
		!slices.Equal(run.Devices[0].Nameless, []Dimension{DimensionOp}) {
		t.Errorf("%+v, %v", run, err)
	}
}
