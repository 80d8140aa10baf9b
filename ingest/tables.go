package ingest

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// tables collects the rows of a run. The four large tables are streamed, since their rows take several times the memory
// of ingest's own data. All other tables are written at the end.
type tables struct {
	files schemas.Replacement
	// hasty is true for tables of an imported file, for which a user waits. Hasty tables are compressed less, and
	// several are written at the same time. The tables of a recording are made on a machine whose cores and memory may
	// have other work.
	hasty       bool
	events      *schemas.TableWriter[schemas.Event]
	marks       *schemas.TableWriter[schemas.Mark]
	allocations *schemas.TableWriter[schemas.Allocation]
	owners      *schemas.TableWriter[schemas.Owner]
	steps       []schemas.Step
	phases      []schemas.Phase
	modules     []schemas.Module
	checkpoints []schemas.Checkpoint
	segments    []schemas.SegmentBlock
	stacks      []schemas.StackFrame
	lines       []schemas.Line
	holders     []schemas.Holder
	processes   []schemas.Process
	moduleTimes []schemas.ModuleTime
	reserved    []schemas.ReservedLevel
	hostMarks   []schemas.HostMark
}

// write calls fill to make the rows and finish the report. write replaces the tables and the report of the run folder
// only if everything succeeded. A failure leaves what an earlier ingest derived.
func write(dir string, r *report, hasty bool, fill func(*tables) error) error {
	t := &tables{files: schemas.Replacement{Dir: dir}, hasty: hasty}
	defer t.files.Discard()
	streams := []*stream{startStream(t, schemas.Events, &t.events), startStream(t, schemas.Marks, &t.marks),
		startStream(t, schemas.Allocations, &t.allocations), startStream(t, schemas.Owners, &t.owners)}
	var err error
	for _, s := range streams {
		err = cmp.Or(err, s.opened())
	}
	if err == nil {
		err = fill(t)
	}
	small := func() error { return nil }
	if err == nil {
		small = t.begin(t.small)
	}
	for _, s := range streams {
		s.end <- err
		if !hasty { // in this mode tables are written one at a time
			s.wait()
		}
	}
	for _, s := range streams {
		err = cmp.Or(err, s.wait())
	}
	if err = cmp.Or(err, small()); err != nil {
		return err
	}
	r.Tables = t.files.Digests()
	if err := t.files.File(schemas.IngestReportFile, r.Encode); err != nil {
		return err
	}
	return t.files.Commit(schemas.IngestReportFile)
}

// A stream is a table that is written while its rows are made. Each stream has a goroutine that has the file open.
type stream struct {
	open  chan struct{}
	end   chan error // gets the reason why no more rows come; nil = there are no more
	ended chan struct{}
	err   error // the stream's error; set once the stream has ended
}

func startStream[T any](t *tables, table schemas.Table[T], w **schemas.TableWriter[T]) *stream {
	s := &stream{open: make(chan struct{}), end: make(chan error, 1), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = t.files.File(table.File(), func(f io.Writer) error {
			*w = table.NewWriter(f)
			if t.hasty {
				*w = table.NewQuickWriter(f)
			}
			close(s.open)
			if err := <-s.end; err != nil {
				return err
			}
			if err := (*w).Close(); err != nil {
				return fmt.Errorf("writing %s: %w", table.File(), err)
			}
			return nil
		})
	}()
	return s
}

// opened waits until the stream's file is open and rows can be written.
func (s *stream) opened() error {
	select {
	case <-s.open:
		return nil
	case <-s.ended:
		return s.err
	}
}

// wait waits until a stream that was told to end has written its table.
func (s *stream) wait() error {
	<-s.ended
	return s.err
}

// small writes the tables that are not streamed. If the tables are hasty, small writes them at the same time.
func (t *tables) small() error {
	var waits []func() error
	for _, write := range []func() error{
		func() error { return whole(t, schemas.Stacks, t.stacks) },
		func() error { return whole(t, schemas.Steps, t.steps) },
		func() error { return whole(t, schemas.Phases, t.phases) },
		func() error { return whole(t, schemas.Modules, t.modules) },
		func() error { return whole(t, schemas.Checkpoints, t.checkpoints) },
		func() error { return whole(t, schemas.Segments, t.segments) },
		func() error { return whole(t, schemas.Lines, t.lines) },
		func() error { return whole(t, schemas.Holders, t.holders) },
		func() error { return whole(t, schemas.Processes, t.processes) },
		func() error { return whole(t, schemas.ModuleTimes, t.moduleTimes) },
		func() error { return whole(t, schemas.Reserved, t.reserved) },
		func() error { return whole(t, schemas.HostMarks, t.hostMarks) },
	} {
		waits = append(waits, t.begin(write))
	}
	var err error
	for _, wait := range waits {
		err = cmp.Or(err, wait())
	}
	return err
}

// whole writes a table that is not streamed.
func whole[T any](t *tables, table schemas.Table[T], rows []T) error {
	encode := table.Encode
	if t.hasty {
		encode = table.EncodeQuick
	}
	err := t.files.File(table.File(), func(w io.Writer) error { return encode(w, rows) })
	if err != nil {
		return fmt.Errorf("writing %s: %w", table.File(), err)
	}
	return nil
}

// addEvents writes the events of one device. The events' columns must not change afterwards. The caller passes wait to
// [tables.add].
func (t *tables) addEvents(runID string, rank int32, rec *recording) (wait func() error) {
	return t.begin(func() error { return t.events.WriteAll(rec.rows(runID, rank)) })
}

// add writes all rows of one joined device except its events, and waits until the events are written. replayed is nil
// if the device has no replay.
func (t *tables) add(runID string, rank int32, rec *recording, replayed *replay.Result, j *join.Result,
	events func() error) error {
	owners := t.begin(func() error {
		if err := events(); err != nil {
			return err
		}
		return t.owners.WriteAll(j.Owners())
	})
	err := t.allocations.WriteAll(j.Allocations())
	if err = cmp.Or(err, owners()); err != nil {
		return err
	}
	t.steps = append(t.steps, j.Steps()...)
	t.phases = append(t.phases, j.Phases()...)
	t.holders = append(t.holders, j.Holders()...)
	for _, c := range rec.checkpoints {
		c.RunID, c.Rank = runID, rank
		t.checkpoints = append(t.checkpoints, c)
	}
	t.reserved = append(t.reserved, reservedLevels(runID, rank, rec, replayed)...)
	lists := [][]schemas.SegmentBlock{rec.atOOM}
	for _, g := range rec.gaps {
		lists = append(lists, g.List)
	}
	for _, list := range append(lists, rec.final) {
		for _, b := range list {
			b.RunID, b.Rank = runID, rank
			t.segments = append(t.segments, b)
		}
	}
	return nil
}

// begin calls write, which writes a separate table; if tables are hasty, in the background. wait returns the error of
// write.
func (t *tables) begin(write func() error) (wait func() error) {
	if !t.hasty {
		err := write()
		return func() error { return err }
	}
	failed := make(chan error, 1)
	go func() { failed <- write() }()
	return func() error { return <-failed }
}

// rows returns the rows of events.parquet for one device.
func (rec *recording) rows(runID string, rank int32) iter.Seq[schemas.Event] {
	return func(yield func(schemas.Event) bool) {
		e := &rec.events
		for i := range e.Len() {
			if !yield(schemas.Event{RunID: runID, Rank: rank, Device: rec.device, Seq: int64(i) + 1,
				Action: int32(e.Action[i]), Addr: e.Addr[i], Size: e.Size[i], Stream: e.StreamOf(i), TimeNS: e.TimeNS[i],
				Mark: int64(e.Mark[i]), Stack: int64(e.Stack[i]), Pool: e.PoolOf(i)}) {
				return
			}
		}
	}
}

// reservedLevels returns the rows of reserved.parquet for one device.
func reservedLevels(runID string, rank int32, rec *recording, replayed *replay.Result) []schemas.ReservedLevel {
	if replayed == nil {
		return nil
	}
	level := func(seq int64) schemas.ReservedLevel {
		return schemas.ReservedLevel{RunID: runID, Rank: rank, Device: rec.device, Seq: seq,
			Bytes: replayed.Reserved.At(seq)}
	}
	rows := []schemas.ReservedLevel{level(0)}
	for i, a := range rec.events.Action {
		if a.Reserves() {
			rows = append(rows, level(int64(i)+1))
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

// markRows returns the rows of marks.parquet: the marks of a journal, each followed by a row for each of its tags.
func markRows(runID string, j *spool.Journal, tags []spool.Tag) iter.Seq[schemas.Mark] {
	return func(yield func(schemas.Mark) bool) {
		for i := range j.Marks {
			m := &j.Marks[i]
			row := markRow(runID, j, m)
			if !yield(row) {
				return
			}
			for len(tags) > 0 && tags[0].K < m.K {
				tags = tags[1:]
			}
			for ; len(tags) > 0 && tags[0].K == m.K; tags = tags[1:] {
				if !yield(tagRow(row, j, &tags[0])) {
					return
				}
			}
		}
	}
}

func markRow(runID string, j *spool.Journal, m *spool.Mark) schemas.Mark {
	row := schemas.Mark{RunID: runID, Rank: j.Rank, K: int64(m.K), Thread: int32(m.Thread), TimeNS: m.TimeNS,
		Kind: m.Kind.String(), Flags: int32(m.Flags), A: m.A, B: m.B}
	switch m.Kind {
	case spool.ForwardBegin, spool.ForwardEnd, spool.ModuleBegin, spool.ModuleEnd, spool.ModuleBackwardBegin,
		spool.ModuleBackwardEnd, spool.SamplerBegin, spool.SamplerEnd:
		row.Module = int64(m.A)
	case spool.PhaseBegin, spool.PhaseEnd, spool.UserMark, spool.CompiledBegin, spool.CompiledEnd, spool.Exception,
		spool.HistoryReset:
		row.Label = j.Names[uint32(m.A)]
	}
	return row
}

// tagRow returns the row of a tag that was made at a mark.
func tagRow(mark schemas.Mark, j *spool.Journal, g *spool.Tag) schemas.Mark {
	row := schemas.Mark{RunID: mark.RunID, Rank: mark.Rank, K: mark.K, Thread: mark.Thread, TimeNS: mark.TimeNS,
		Kind: "tag", Address: g.Address, Bytes: g.Bytes, Category: g.Kind.String(), Label: j.Names[g.Name]}
	if g.Untag {
		row.Kind = "untag"
	}
	if g.Kind == spool.TagUser {
		row.Category = j.Names[g.Module]
	} else {
		row.Module = int64(g.Module)
	}
	return row
}

func (t *tables) addStacks(runID string, rank int32, s *torchsnap.Stacks) {
	if s == nil {
		return
	}
	for id := 1; id <= s.Len(); id++ {
		for depth, f := range s.Stack(uint32(id)) {
			t.stacks = append(t.stacks, schemas.StackFrame{RunID: runID, Rank: rank, Stack: int64(id),
				Depth:    int32(depth),
				Function: f.Function, File: f.File, Line: f.Line})
		}
	}
}

// addHost adds the rows with a process's host memory at its marks.
func (t *tables) addHost(runID string, j *spool.Journal) {
	for _, h := range j.Host {
		at, found := slices.BinarySearchFunc(j.Marks, h.K, func(m spool.Mark, k uint32) int { return cmp.Compare(m.K, k) })
		if !found {
			continue // a mark that its thread did not finish before it ended
		}
		row := schemas.HostMark{RunID: runID, Rank: j.Rank, K: int64(h.K), TimeNS: j.Marks[at].TimeNS, RSSBytes: h.RSSBytes}
		if h.PinnedBytes >= 0 {
			row.PinnedBytes = &h.PinnedBytes
		}
		t.hostMarks = append(t.hostMarks, row)
	}
}

func (t *tables) addLines(runID string, j *spool.Journal) {
	if j.Lines == nil {
		return
	}
	for _, l := range j.Lines.Lines {
		t.lines = append(t.lines, schemas.Line{RunID: runID, Rank: j.Rank, Line: int64(l.ID), File: l.File,
			Number: l.Line, Function: l.Function})
	}
}
