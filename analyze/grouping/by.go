package grouping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Tables lists the tables that a breakdown by dimensions needs.
const Tables = memory.LedgerTables | schemas.WantDetail

// BreakdownBySchema is the version of [BreakdownByDocument].
const BreakdownBySchema = "dpsight.breakdown_by/1"

// By says how a breakdown groups bytes into rows.
type By struct {
	Dimensions []Dimension // one dimension, or two: the second divides the first
	// Depth is how many names of a module's path, or how many frames of a stack, distinguish rows; 0 = whole paths,
	// three frames.
	Depth int
	// If Fold is true, similar modules that differ only by their number share a row. So do the tensors named after such
	// modules, and the entries of a list that keeps blocks.
	Fold bool
	// If FullStack is true, stacks include the frames of torch and C++, and whole stacks are shown if Depth is 0.
	FullStack bool
	Top       int // rows beyond the largest Top are merged: "12 others"; 0 = no row is merged
}

// Check returns an error for options of a breakdown that have no meaning together.
func (b *By) Check() error {
	has := func(d Dimension) bool { return slices.Contains(b.Dimensions, d) }
	switch {
	case b.Depth < 0:
		return fmt.Errorf("depth %d is not a number of names, 0 or more", b.Depth)
	case b.Top < 0:
		return fmt.Errorf("top %d is not a number of rows, 0 or more", b.Top)
	case b.Depth > 0 && !has(DimensionModule) && !has(DimensionStack):
		return fmt.Errorf("depth is of module paths and stacks, and the breakdown is by %s", joined(b.Dimensions))
	case b.FullStack && !has(DimensionStack):
		return fmt.Errorf("whole stacks are asked for, and the breakdown is by %s", joined(b.Dimensions))
	case b.Fold && !has(DimensionModule) && !has(DimensionName) && !has(DimensionHolder):
		return fmt.Errorf("modules or holders are to be folded, and the breakdown is by %s", joined(b.Dimensions))
	}
	return nil
}

// BreakdownByDocument is what "dpsight breakdown --by … --format json" prints.
type BreakdownByDocument struct {
	Schema string           `json:"schema"`
	By     []Dimension      `json:"by"`
	Depth  int              `json:"depth"`
	Fold   bool             `json:"fold"`
	Full   bool             `json:"full_stack,omitempty"`
	Top    int              `json:"top"`
	Runs   []BreakdownByRun `json:"runs"`
}

// NewBreakdownByDocument makes the document of these runs, which were all broken down by the same.
func NewBreakdownByDocument(by By, runs ...BreakdownByRun) BreakdownByDocument {
	if runs == nil {
		runs = []BreakdownByRun{}
	}
	identity.Distinguish(runs, func(r *BreakdownByRun) *identity.Identity { return &r.Identity })
	return BreakdownByDocument{BreakdownBySchema, by.Dimensions, by.Depth, by.Fold, by.FullStack, by.Top, runs}
}

// BreakdownByRun is one run's breakdown by dimensions. Devices is empty for a run without allocator events, or without
// the requested moment.
type BreakdownByRun struct {
	identity.Identity
	Devices  []DeviceBy `json:"devices"`
	Missing  string     `json:"missing,omitempty"` // see [memory.BreakdownRun]
	Warnings []string   `json:"warnings"`

	Remarks []memory.Remark `json:"-"`
}

// DeviceBy is one device's allocated bytes at one moment by one dimension or two.
type DeviceBy struct {
	Device         string        `json:"device"`
	Rank           int32         `json:"rank"`
	At             memory.Moment `json:"at"`
	AllocatedBytes int64         `json:"allocated_bytes"`
	// TorchPeakAllocatedBytes is the peak over the whole run by torch's own counter.
	TorchPeakAllocatedBytes *int64 `json:"torch_peak_allocated_bytes"`
	// Rows are the values of the first dimension. The rows' bytes sum to AllocatedBytes. Each row contains its values
	// of the second dimension.
	Rows []ByRow `json:"rows"`
	// Columns are the values of the second dimension over all rows. The columns' bytes sum to AllocatedBytes too.
	// Columns is null for one dimension.
	Columns []ByRow `json:"columns"`
	// UnknownBytes has, for each dimension, the bytes of blocks whose value in this dimension is not known.
	UnknownBytes map[Dimension]int64 `json:"unknown_bytes"`
	// ModuleBytes is null if no dimension is a property of modules.
	ModuleBytes           *memory.ModuleBytes      `json:"module_bytes"`
	SharedHookActivations *memory.SharedActivation `json:"shared_hook_activations"` // null if hooks share nothing
	Conservation          memory.Conservation      `json:"conservation"`
	Warnings              []string                 `json:"warnings"`
	Remarks               []memory.Remark          `json:"-"`
	// Nameless lists the dimensions in which no block's value is known. Report mentions them among Warnings.
	Nameless []Dimension `json:"-"`
}

// ByRow has the bytes with one value of a dimension. Each byte is in exactly one row.
type ByRow struct {
	// Key is the value. Key is null if the value is unknown, and for merged rows. [schemas.SharedByModules] and
	// [NotAnActivation] stand for blocks that certainly have no value.
	Key    *string `json:"key"`
	Source string  `json:"source,omitempty"` // text of the line, in a row by line whose file is available
	Others int     `json:"others"`           // how many values this row merges; 0 = it has one value
	// Modules is how many paths, cut to the depth, the row covers; 0 for a row that is not of modules.
	Modules int   `json:"modules"`
	Bytes   int64 `json:"bytes"`
	// ViewBytes is how many of the row's bytes the tensors that keep its blocks show. ViewBytes is null if they show
	// all bytes, or if the row is not about a holder.
	ViewBytes       *int64 `json:"view_bytes,omitempty"`
	memory.Evidence        // splits Bytes by how their categories are known
	// Blocks is the number of live blocks with bytes in the row; for slack, the number of blocks larger than their
	// request.
	Blocks int64   `json:"blocks"`
	Rows   []ByRow `json:"rows,omitempty"` // rows by the second dimension; their bytes sum to Bytes
}

// BreakdownBy divides each device's bytes at a moment by the dimensions of by. A run without allocator events gives
// its identity, no devices and a [*NoEventsError]. A run without the moment gives a [*NoMomentError].
func BreakdownBy(in schemas.Tables, at memory.At, by By) (BreakdownByRun, error) {
	return BreakdownByWith(&in, at, by, memory.NewLedgers(&in))
}

// BreakdownByWith is [BreakdownBy] with ledgers that the caller has already made.
func BreakdownByWith(in *schemas.Tables, at memory.At, by By, ledgers *memory.Ledgers) (BreakdownByRun, error) {
	whole, err := memory.BreakdownWith(in, at, ledgers)
	run := BreakdownByRun{Identity: whole.Identity, Devices: []DeviceBy{}, Missing: whole.Missing,
		Warnings: whole.Warnings, Remarks: whole.Remarks}
	if err != nil {
		return run, err
	}
	for _, p := range identity.Places(in) {
		for i := range whole.Devices {
			if d := &whole.Devices[i]; d.Rank == p.Rank && d.Device == p.String() {
				run.Devices = append(run.Devices, deviceBy(in, p, ledgers.Of(p), d, by))
			}
		}
	}
	return run, nil
}

// deviceBy groups the bytes of a device's breakdown d by the dimensions.
func deviceBy(in *schemas.Tables, p identity.Place, l *memory.Ledger, d *memory.DeviceBreakdown, by By) DeviceBy {
	out := DeviceBy{Device: d.Device, Rank: d.Rank, At: d.At, AllocatedBytes: d.AllocatedBytes,
		TorchPeakAllocatedBytes: d.TorchPeakAllocatedBytes,
		UnknownBytes:            map[Dimension]int64{}, SharedHookActivations: d.SharedHookActivations(),
		Conservation: d.Conservation, Warnings: d.Warnings, Remarks: d.Remarks}
	if out.SharedHookActivations != nil {
		out.SharedHookActivations.RunID = in.Manifest.RunID
	}
	t := newTally(in, p, l, d.At.Event, by)
	for i, a := range l.Allocs {
		if a.LiveAt(d.At.Event) {
			t.add(i)
		}
	}
	out.Rows = t.rows.list(by.Top)
	if len(by.Dimensions) > 1 {
		out.Columns = t.columns.list(by.Top)
	}
	sources := sourcesOf(in, p.Rank, by)
	addSources(out.Rows, by.Dimensions, sources)
	if last := len(by.Dimensions) - 1; last > 0 {
		addSources(out.Columns, by.Dimensions[last:], sources)
	}
	for i, dim := range by.Dimensions {
		out.UnknownBytes[dim] = t.unknown[i]
		if t.unknown[i] > 0 && t.unknown[i]+t.none[i] == d.AllocatedBytes {
			out.Nameless = append(out.Nameless, dim)
		}
	}
	if slices.ContainsFunc(by.Dimensions, Dimension.NeedsModule) {
		out.ModuleBytes = &t.module
	}
	return out
}

// A tally counts blocks into rows.
type tally struct {
	l       *memory.Ledger
	seq     int64
	by      By
	keyers  []*Keyer
	modules *memory.ModuleIndex // nil if no dimension needs modules
	rows    *group              // groups by the first dimension, each divided by the second
	columns *group              // groups by the second dimension alone
	unknown []int64
	none    []int64 // bytes that certainly have no value, by reason: NotAnActivation, HeldByTraining
	module  memory.ModuleBytes
	unseen  int64 // bytes of the present block that the view which keeps the block does not show
}

func newTally(in *schemas.Tables, p identity.Place, l *memory.Ledger, seq int64, by By) *tally {
	t := &tally{l: l, seq: seq, by: by, rows: newGroup(), columns: newGroup(),
		unknown: make([]int64, len(by.Dimensions)),
		none:    make([]int64, len(by.Dimensions))}
	if slices.ContainsFunc(by.Dimensions, Dimension.NeedsModule) || slices.Contains(by.Dimensions, DimensionName) {
		t.modules = memory.NewModuleIndex(in, p.Rank)
	}
	for _, d := range by.Dimensions {
		t.keyers = append(t.keyers, NewKeyer(in, d, &t.by, p))
	}
	return t
}

// add counts block i: its requested bytes under its category, and the rest under slack.
func (t *tally) add(i int) {
	a := t.l.Allocs[i]
	category, evidence := t.l.Category(i, t.seq)
	var m *schemas.Module
	name := "" // name of the module, cut to the depth
	if t.modules != nil {
		var how *int64
		m, how = t.modules.Module(t.l, i, t.seq, &t.module)
		*how += a.BlockBytes
		if m != nil && m != memory.IsSharedByModules {
			name = ModulePath(m, t.by.Depth)
		}
	}
	var o *schemas.Owner
	if slices.ContainsFunc(t.by.Dimensions, Dimension.needsOwner) {
		o = t.l.Owner(i, t.seq)
	}
	keys := t.keys(a, category, m, o)
	t.unseen = t.unseenOf(a)
	t.count(keys, nil, name, a.RequestedBytes, evidence)
	t.unseen = 0
	if slack := a.BlockBytes - a.RequestedBytes; slack != 0 {
		t.count(t.keys(a, memory.SlackPlace, m, o), keys, name, slack, "")
	}
}

// unseenOf returns how many bytes of a block are not shown by the view that keeps it.
func (t *tally) unseenOf(a *schemas.Allocation) int64 {
	for _, k := range t.keyers {
		if k.held == nil {
			continue
		}
		if h := k.held.Of(a); h != nil {
			return h.StorageBytes - h.ViewBytes
		}
	}
	return 0
}

func (t *tally) keys(a *schemas.Allocation, category int, m *schemas.Module, o *schemas.Owner) []dimensionKey {
	keys := make([]dimensionKey, len(t.keyers))
	for k, keyer := range t.keyers {
		keys[k] = keyer.Key(a, category, m, o)
	}
	return keys
}

// count adds one part of a block, its request or its slack, to its rows. counted has the keys under which the other
// part was counted, or is nil: a row that has both parts counts the block once.
func (t *tally) count(keys, counted []dimensionKey, module string, bytes int64, evidence schemas.Evidence) {
	at, again := t.rows, counted != nil
	for k, key := range keys {
		again = again && key == counted[k]
		switch key.Text {
		case "":
			t.unknown[k] += bytes
		case NotAnActivation, HeldByTraining:
			t.none[k] += bytes
		}
		at = at.of(key)
		at.add(bytes, evidence, !again)
		if t.by.Dimensions[k] == DimensionHolder {
			at.unseen += t.unseen
		}
		if t.by.Dimensions[k] == DimensionModule && module != "" {
			at.modules[module] = true
		}
	}
	if last := len(keys) - 1; last > 0 {
		c := t.columns.of(keys[last])
		c.add(bytes, evidence, counted == nil || keys[last] != counted[last])
		if t.by.Dimensions[last] == DimensionModule && module != "" {
			c.modules[module] = true
		}
	}
}

// A group is a row while blocks are counted into it. The topmost group contains all rows.
type group struct {
	key dimensionKey
	memory.Evidence
	bytes, blocks int64
	unseen        int64 // see [ByRow.ViewBytes]
	others        int
	modules       map[string]bool
	within        map[dimensionKey]*group
}

func newGroup() *group { return &group{modules: map[string]bool{}, within: map[dimensionKey]*group{}} }

func (g *group) of(key dimensionKey) *group {
	if g.within[key] == nil {
		g.within[key] = newGroup()
		g.within[key].key = key
	}
	return g.within[key]
}

func (g *group) add(bytes int64, evidence schemas.Evidence, block bool) {
	g.bytes += bytes
	g.Evidence.Add(bytes, evidence)
	if block {
		g.blocks++
	}
}

// merge adds all of another group.
func (g *group) merge(o *group) {
	g.bytes, g.blocks, g.unseen = g.bytes+o.bytes, g.blocks+o.blocks, g.unseen+o.unseen
	g.Merge(&o.Evidence)
	maps.Copy(g.modules, o.modules)
	for key, w := range o.within {
		g.of(key).merge(w)
	}
}

// aside lists the values whose rows come last, even if they have many bytes, and that are not merged into a row such as
// "12 others".
var aside = []string{schemas.SharedByModules, NotAnActivation, HeldByCpp, HeldByTraining, ""}

// list returns the group's rows, in the order of the dimension and then by bytes. Values in aside, unknown values and
// merged rows come last. If there are more than top known values, the smallest are merged into one row, if that saves a
// row.
func (g *group) list(top int) []ByRow {
	all := slices.Collect(maps.Values(g.within))
	known := slices.DeleteFunc(slices.Clone(all), func(w *group) bool { return slices.Contains(aside, w.key.Text) })
	slices.SortFunc(known, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.key.place, b.key.place), CompareNames(a.key.Text,
			b.key.Text))
	})
	var left []*group
	if top > 0 {
		known, left = memory.TopAndRest(known, top)
	}
	slices.SortStableFunc(known, func(a, b *group) int { return cmp.Compare(a.key.place, b.key.place) })
	rows := []ByRow{}
	for _, w := range known {
		rows = append(rows, w.row(top))
	}
	for _, text := range aside {
		for _, w := range all {
			if w.key.Text == text {
				rows = append(rows, w.row(top))
			}
		}
	}
	if len(left) > 0 {
		rest := newGroup()
		for _, w := range left {
			rest.merge(w)
		}
		rest.others = len(left)
		rows = append(rows, rest.row(top))
	}
	return rows
}

// CompareNames orders paths with dots and indices, blocks.2 before blocks.10 and kept[2] before kept[10].
func CompareNames(a, b string) int {
	parted := func(r rune) bool { return strings.ContainsRune(".[]", r) }
	byName := slices.CompareFunc(strings.FieldsFunc(a, parted), strings.FieldsFunc(b, parted), func(x, y string) int {
		if isNumber(x) && isNumber(y) {
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		}
		return cmp.Compare(x, y)
	})
	return cmp.Or(byName, cmp.Compare(a, b))
}

func (g *group) row(top int) ByRow {
	r := ByRow{Others: g.others, Modules: len(g.modules), Bytes: g.bytes, Evidence: g.Evidence, Blocks: g.blocks}
	if g.key.Text != "" {
		r.Key = new(g.key.Text)
	}
	if g.unseen > 0 {
		r.ViewBytes = new(g.bytes - g.unseen)
	}
	if len(g.within) > 0 {
		r.Rows = g.list(top)
	}
	return r
}
