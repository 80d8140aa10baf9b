package join

import (
	"fmt"
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
)

// world simulates a training script with its agent. world makes marks, tags and allocator events in the order in which
// they happen in a real run. The allocator of a world gives each block the first free segment that is large enough, so
// blocks reuse addresses.
type world struct {
	t      *testing.T
	marks  []spool.Mark
	tags   []spool.Tag
	events schemas.EventColumns
	names  map[uint32]string
	ids    map[string]uint32
	last   map[uint16]uint32 // the number of each thread's last mark
	free   []segment
	live   map[string]*block
	blocks map[string][]*block // all blocks that had a name, in order
	next   uint64
	at     map[string]int64 // the event at each label
	gaps   []replay.Gap
	drains []schemas.Checkpoint
	stream uint64 // the stream for which blocks are allocated
}

type segment struct {
	addr uint64
	size int64
}

type block struct {
	segment
	bytes      int64
	born, died int64
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, names: map[uint32]string{}, ids: map[string]uint32{}, last: map[uint16]uint32{},
		live:   map[string]*block{},
		blocks: map[string][]*block{}, next: 0x7f0000000000, at: map[string]int64{}}
	w.mark(0, spool.Start, 0, 0)
	w.mark(0, spool.CudaReady, 0, 0)
	w.mode(spool.FlagInstrumented | spool.FlagRecording)
	return w
}

func (w *world) mark(th uint16, kind spool.Kind, flags uint8, a uint64) uint32 {
	k := uint32(len(w.marks) + 1)
	w.marks = append(w.marks, spool.Mark{K: k, Thread: th, Kind: kind, Flags: flags, TimeNS: int64(k) * 1000, A: a})
	w.last[th] = k
	return k
}

func (w *world) mode(flags uint8) { w.mark(0, spool.Mode, flags, 0) }

func (w *world) name(s string) uint32 {
	if w.ids[s] == 0 {
		w.ids[s] = uint32(len(w.ids) + 1)
		w.names[w.ids[s]] = s
	}
	return w.ids[s]
}

func (w *world) event(th uint16, a schemas.Action, addr uint64, size int64) {
	w.events.Append(a, addr, size, w.stream, int64(w.events.Len())*1000, w.last[th], 0, 0)
}

func (w *world) alloc(th uint16, name string, bytes int64) {
	w.t.Helper()
	if w.live[name] != nil {
		w.t.Fatalf("%s is live", name)
	}
	var s segment
	for i, f := range w.free {
		if f.size >= bytes && (f.size > 2*mib) == (bytes > mib) {
			s = f
			w.free = append(w.free[:i:i], w.free[i+1:]...)
			break
		}
	}
	if s.addr == 0 {
		s = segment{w.next, (bytes + 2*mib - 1) / (2 * mib) * 2 * mib}
		if bytes > mib && s.size <= 2*mib {
			s.size = 4 * mib
		}
		w.next += uint64(s.size)
		w.event(th, schemas.ActionSegmentAlloc, s.addr, s.size)
	}
	w.event(th, schemas.ActionAlloc, s.addr, bytes)
	b := &block{s, bytes, int64(w.events.Len()), 0}
	w.live[name], w.blocks[name] = b, append(w.blocks[name], b)
}

func (w *world) drop(th uint16, names ...string) {
	w.t.Helper()
	for _, name := range names {
		b := w.live[name]
		if b == nil {
			w.t.Fatalf("%s is not live", name)
		}
		w.event(th, schemas.ActionFreeRequested, b.addr, b.bytes)
		b.died = int64(w.events.Len())
		w.event(th, schemas.ActionFreeCompleted, b.addr, b.bytes)
		w.free = append(w.free, b.segment)
		delete(w.live, name)
	}
}

func (w *world) tag(th uint16, kind spool.TagKind, names ...string) { w.tagged(th, kind, false, names) }

func (w *world) untag(th uint16, kind spool.TagKind, names ...string) {
	w.tagged(th, kind, true, names)
}

func (w *world) tagged(th uint16, kind spool.TagKind, untag bool, names []string) {
	w.t.Helper()
	k := w.mark(th, spool.Tags, 0, uint64(len(names)))
	for _, name := range names {
		b := w.live[name]
		if b == nil {
			w.t.Fatalf("%s is not live", name)
		}
		w.tags = append(w.tags, spool.Tag{K: k, Untag: untag, Kind: kind, Address: b.addr, Bytes: b.bytes,
			Name: w.name(name)})
	}
}

func (w *world) label(s string) { w.at[s] = int64(w.events.Len()) }

const (
	fwdFlags = spool.FlagGrad | spool.FlagTraining
	main     = uint16(0)
	engine   = uint16(1)
)

func (w *world) forward(body func()) {
	w.mark(main, spool.ForwardBegin, fwdFlags, 1)
	body()
	w.mark(main, spool.ForwardEnd, fwdFlags|spool.FlagDifferentiable, 1)
}

// backward runs body between marks of a backward pass, with a mark of autograd's thread as the agent makes it.
func (w *world) backward(flags uint8, body func()) {
	k := w.mark(main, spool.BackwardBegin, spool.FlagAccumulate|flags, 1)
	// this event stands for the allocation of the seed gradient, which the main thread makes
	w.event(main, schemas.ActionSnapshot, 0, 0)
	w.mark(engine, spool.Engine, 0, uint64(k))
	body()
	w.mark(main, spool.BackwardEnd, 0, 0)
}

func (w *world) span(begin spool.Kind, th uint16, a uint64, body func()) {
	w.mark(th, begin, 0, a)
	body()
	w.mark(th, begin+1, 0, a)
}

func (w *world) join(more ...func(*Rank)) *Result {
	w.t.Helper()
	rank := &Rank{RunID: "run", Marks: w.marks, Tags: w.tags, Names: w.names, Steps: steps.Derive(w.marks, w.names)}
	for _, f := range more {
		f(rank)
	}
	res, err := replay.Run(&w.events, replay.Settings{}, w.gaps, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if s := res.Anomalies.Reason(); s != "" {
		w.t.Fatalf("the test's allocator is wrong: %s", s)
	}
	joined, unbound := Join(NewContext(rank), []Device{{Device: 0, Events: &w.events, Replay: res,
		Checkpoints: w.drains}})
	j := joined[0]
	checkOwners(w.t, j)
	w.at["unbound"] = unbound
	return j
}

// category returns the category and the evidence of a name's n-th block at a label, in the form "gradients/tagged".
func (w *world) category(j *Result, name string, n int, label string) string {
	w.t.Helper()
	seq, ok := w.at[label]
	if !ok || n >= len(w.blocks[name]) {
		w.t.Fatalf("no label %s, or no life %d of %s", label, n, name)
	}
	b := w.blocks[name][n]
	for l := range j.facts.device.Replay.Allocs {
		if a := &j.facts.device.Replay.Allocs[l]; a.AllocSeq != b.born || a.Address != b.addr {
			continue
		}
		if o := ownerAt(j, l, seq); o != nil {
			return fmt.Sprintf("%s/%s", schemas.Categories[o.category], evidences[o.evidence])
		}
		return "dead"
	}
	return "no such block"
}

// expectation says which category and which evidence a name's block has at a label, in the form "gradients/tagged". If
// several blocks have the same name, they are numbered from 0; lastLife is the last block.
type expectation struct {
	name        string
	life        int
	label, want string
}

const lastLife = -1

func (w *world) expect(j *Result, all []expectation) {
	w.t.Helper()
	for _, e := range all {
		life := e.life
		if life == lastLife {
			life = len(w.blocks[e.name]) - 1
		}
		if got := w.category(j, e.name, life, e.label); got != e.want {
			w.t.Errorf("%s (%d) at %s: %s, want %s", e.name, life, e.label, got, e.want)
		}
	}
}

// ownerAt returns the owner under which an allocation counts just after event seq. ownerAt returns nil if no owner
// holds the allocation then.
func ownerAt(j *Result, alloc int, seq int64) *owner {
	for i, o := range j.owners.of(alloc) {
		if o.begin <= seq && seq < endOf(o.end) {
			return &j.owners.of(alloc)[i]
		}
	}
	return nil
}

// categoryAt returns the category under which an allocation counts just after event seq. The category is other if no
// owner holds the allocation then.
func categoryAt(j *Result, alloc int, seq int64) categoryIndex {
	if o := ownerAt(j, alloc, seq); o != nil {
		return o.category
	}
	return other
}

// checkOwners checks properties that the owners of every recording must have. Each moment of each block's life has an
// owner, no owner holds a block beyond its life, and at each event the bytes of all categories sum to the allocated
// bytes.
func checkOwners(t *testing.T, j *Result) {
	t.Helper()
	lives := j.facts.device.Replay.Allocs
	for l := range lives {
		a := &lives[l]
		at := a.AllocSeq
		owners := append([]owner(nil), j.owners.of(l)...)
		for changed := true; changed; {
			changed = false
			for _, o := range owners {
				if o.begin <= at && endOf(o.end) > at {
					at, changed = endOf(o.end), true
				}
			}
		}
		if at != endOf(a.FreeRequestedSeq) {
			t.Fatalf("life %d %+v has no owner at %d: %+v", l, a, at, owners)
		}
		for _, o := range owners {
			if int(o.alloc) != l || o.begin < a.AllocSeq || endOf(o.end) > endOf(a.FreeRequestedSeq) ||
				o.begin >= endOf(o.end) {
				t.Fatalf("life %d %+v has an ownership outside it: %+v", l, a, o)
			}
		}
	}
	sums := make([]int64, j.facts.device.Replay.Events+2)
	for l := range lives {
		end := min(endOf(lives[l].FreeRequestedSeq), int64(len(sums)-1))
		for seq := lives[l].AllocSeq; seq < end; seq++ {
			if ownerAt(j, l, seq) != nil {
				sums[seq] += lives[l].Block
			}
		}
	}
	for seq, v := range j.facts.device.Replay.Allocated {
		if sums[seq] != v {
			t.Fatalf("at event %d categories sum to %d of %d bytes", seq, sums[seq], v)
		}
	}
}
