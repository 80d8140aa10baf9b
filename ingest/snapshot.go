package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/ingest/annotations"
	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/stackrules"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/units"
)

// snapshotFile is the name of the copy of the snapshot in an imported run's spool folder, from which the run can be
// ingested again.
const snapshotFile = "snapshot.pickle"

const hint = "call torch.cuda.memory._record_memory_history() before the first use of the GPU, and " +
	"torch.cuda.memory._dump_snapshot(FILE) at the end"

// idTime is the format of the time at the beginning of a run's id. noTime stands for an unknown time.
const (
	idTime = "20060102T150405Z"
	noTime = "00000000T000000Z"
)

// idDigits is how many digits of the digest of a snapshot's content the id of its run ends with.
const idDigits = 6

// refusal is the error for an input that is not damaged, but that dpsight cannot import.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// ingestSnapshot ingests an imported run again, from the copies of its snapshots that the run keeps.
func ingestSnapshot(dir string, m *schemas.Manifest, o Options) (*schemas.IngestReport, error) {
	var of []rankSnapshot
	for _, f := range importedFiles(m.Import) {
		path := copyPath(dir, f.file)
		err := checkCopy(path, f.of)
		if errors.Is(err, os.ErrNotExist) {
			return nil, refuse("the run was imported from %s and keeps no copy: ingest that file again", f.of.File)
		}
		if err != nil {
			return nil, err
		}
		of = append(of, rankSnapshot{rank: f.rank, file: f.file})
	}
	if o.StackRules != nil {
		m.Import.StackRules = o.StackRules
		if err := schemas.WriteManifest(dir, m); err != nil {
			return nil, err
		}
	}
	return snapshotTables(dir, m, of, o)
}

// checkCopy compares the copy of an imported file with its digest. Older versions kept only the file's digest. The
// file's digest equals the digest of the copy or of its content, unless the file was compressed by gzip.
func checkCopy(path string, of *schemas.Import) error {
	copied, err := hashOf(path)
	if err != nil || copied == of.CopySHA256 || of.CopySHA256 == "" && copied == of.SHA256 {
		return err
	}
	if of.CopySHA256 == "" {
		if strings.HasSuffix(strings.ToLower(of.File), ".gz") {
			return nil
		}
		if plain, err := hashOfPlain(path); err == nil && plain == of.SHA256 {
			return nil
		}
	}
	return &schemas.DamagedError{File: filepath.Base(path), Reason: "its digest differs from the imported file's",
		Advice: "ingest " + of.File + " again; tables that were made from it stay as they are"}
}

// hashOfPlain returns the digest of the content of a file that zstd compressed.
func hashOfPlain(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return "", err
	}
	defer z.Close()
	h := sha256.New()
	if _, err := io.Copy(h, z); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashOf(path string) (string, error) {
	f, err := schemas.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readSnapshot reads the copy of a snapshot that a run keeps.
func readSnapshot(path string) (*torchsnap.Snapshot, error) {
	s, err := torchsnap.ReadFile(path, torchsnap.Options{})
	if err != nil {
		return nil, err
	}
	return s, attributable(s)
}

// attributable returns an error for a snapshot without events and blocks.
func attributable(s *torchsnap.Snapshot) error {
	used := func(c schemas.EventColumns) bool { return c.Len() > 0 }
	if len(s.Segments) == 0 && !slices.ContainsFunc(s.Devices, used) {
		return refuse("the snapshot holds no events and no blocks; %s", hint)
	}
	return nil
}

// snapshotManifest returns the manifest of the run that a snapshot becomes. The same name and content give the same id.
func snapshotManifest(file, sum string, s *torchsnap.Snapshot, o Options) *schemas.Manifest {
	first, last := int64(0), int64(0)
	for i := range s.Devices {
		if t := s.Devices[i].TimeNS; len(t) > 0 && t[0] > 0 {
			if first == 0 || t[0] < first {
				first = t[0]
			}
			last = max(last, t[len(t)-1])
		}
	}
	stamp, start := noTime, time.Time{}
	var end *time.Time
	if first > 0 {
		start = time.Unix(0, first).UTC()
		stamp = start.Format(idTime)
		e := time.Unix(0, last).UTC()
		end = &e
	}
	name := sanitize(snapshotName(file))
	warnings := []string{}
	if first == 0 {
		warnings = append(warnings, "the snapshot has no times")
	}
	id := fmt.Sprintf("%s-%s-%s", stamp, name, sum[:idDigits])
	return &schemas.Manifest{RunID: id, Name: name, Source: schemas.Imported, Status: schemas.StatusOK,
		Command: []string{}, Params: map[string]any{}, Start: start, End: end, GPUs: []schemas.GPU{},
		Warnings:  warnings,
		Collector: schemas.Collector{Version: o.Version, Uninjected: []string{}},
		Import:    &schemas.Import{Kind: schemas.ImportSnapshot, File: file, SHA256: sum, StackRules: o.StackRules}}
}

// snapshotName returns a file's name without its endings.
func snapshotName(file string) string {
	name := packed.Plain(file)
	for _, suffix := range []string{".pickle", ".pkl"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// sanitize makes a name safe in a path.
func sanitize(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	safe = strings.Trim(safe, "-.")
	if len(safe) > 60 {
		safe = strings.Trim(safe[:60], "-.")
	}
	if safe == "" {
		return "snapshot"
	}
	return safe
}

// A rankSnapshot is the snapshot of one rank of an imported run.
type rankSnapshot struct {
	rank int32
	file string              // name of the snapshot's copy in the run's spool folder
	read *torchsnap.Snapshot // nil = the copy has yet to be read
}

// snapshotTables derives the tables of an imported run. The file or the user's rules name the run's phases (package
// annotations), and stacks decide the categories of blocks (package stackrules). The snapshots of several ranks are
// read one after the other.
func snapshotTables(dir string, m *schemas.Manifest, of []rankSnapshot, o Options) (*schemas.IngestReport, error) {
	rules, err := stackrules.Default.Before(m.Import.StackRules)
	if err != nil {
		return nil, err
	}
	r := newReport(m, o)
	err = write(dir, r, true, func(t *tables) error {
		for i := range of {
			s := of[i].read
			of[i].read = nil // releases the snapshot's memory for the next one
			if s == nil {
				if s, err = readSnapshot(copyPath(dir, of[i].file)); err != nil {
					return &rankError{i, err}
				}
			}
			if err := addSnapshot(m, of[i].rank, s, rules, t, r); err != nil {
				return &rankError{i, err}
			}
		}
		r.warnOfDevices()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r.IngestReport, nil
}

// addSnapshot adds the data from the snapshot of a rank to the tables and the report.
func addSnapshot(m *schemas.Manifest, rank int32, s *torchsnap.Snapshot, rules stackrules.Rules, t *tables,
	r *report) error {
	defer collectDecoder(s)()
	settings, err := replaySettings(s.Settings)
	if err != nil {
		return err
	}
	meaningsOf := sync.OnceValues(func() ([]stackrules.Meaning, error) { return rules.Meanings(s.Stacks) })
	go meaningsOf() // the meanings are needed once the replay is made
	phases, python := rules.Phases(s.Stacks)
	marked := &spool.Journal{Rank: rank, Names: map[uint32]string{}}
	for d := range deviceCount(s) {
		rec := snapshotRecording(s, int32(d), settings)
		if rec == nil {
			continue
		}
		place := placeOf(m, rank, rec.device)
		// If no phases need marks on the events, the table of events is written during the replay.
		var events func() error
		if len(s.Annotations) == 0 && phases == nil && !s.HasTexts(d) {
			events = t.addEvents(m.RunID, rank, rec)
		}
		res, v, err := rec.replayed()
		if err != nil {
			if events != nil {
				events()
			}
			return fmt.Errorf("%s: %w", place, err)
		}
		found, notes := annotations.Find(annotations.Input{Events: &rec.events, Annotations: s.Annotations,
			Text: func(event int) string { return s.Text(d, event) }, Phases: phases, Python: python,
			Allocated: res.Allocated, Late: res.Anomalies.Late()})
		meanings, err := meaningsOf()
		if err != nil {
			if events != nil {
				events()
			}
			return err
		}
		from := len(marked.Marks)
		spans := markPhases(rec, found, marked)
		if events == nil {
			events = t.addEvents(m.RunID, rank, rec)
		}
		ctx := join.NewContext(&join.Rank{RunID: m.RunID, Rank: rank, Marks: marked.Marks[from:], Names: marked.Names,
			Steps: spans, Untimed: true})
		made := survivors(s, rec.device)
		joined, _ := join.Join(ctx, []join.Device{{Device: rec.device, Events: &rec.events, Replay: res, Survivors: made,
			Meanings: meanings}})
		v.Rank, v.InstrumentedPeakSeq = rank, joined[0].InstrumentedPeakSeq
		r.Devices = append(r.Devices, v)
		r.warnOfReplay(rank, rec, res)
		r.warnOfHistory(place, rec, res, made)
		r.addTraceFailures(rank, rec)
		r.warnOfOwners(place, rec, v.PeakSeq, joined[0])
		if by := annotations.Sources(found); by != "" {
			r.warn("%s: its phases are %s", place, by)
		}
		for _, note := range notes {
			r.warn("%s: %s", place, note)
		}
		if err := t.add(m.RunID, rank, rec, res, joined[0], events); err != nil {
			return err
		}
	}
	if err := t.marks.WriteAll(markRows(m.RunID, marked, nil)); err != nil {
		return err
	}
	t.addStacks(m.RunID, rank, s.Stacks)
	for _, odd := range s.Odd {
		if len(m.Import.Ranks) > 0 {
			odd = fmt.Sprintf("rank %d: %s", rank, odd)
		}
		r.warn("the file is not as torch writes it: %s", odd)
	}
	return nil
}

// placeOf returns the name of a device of an imported run, with its rank if the run has several ranks.
func placeOf(m *schemas.Manifest, rank, device int32) string {
	if len(m.Import.Ranks) > 0 {
		return fmt.Sprintf("rank %d, device %d", rank, device)
	}
	return fmt.Sprintf("device %d", device)
}

// deviceCount returns the highest number of a device that has events or memory, plus one.
func deviceCount(s *torchsnap.Snapshot) int {
	n := len(s.Devices)
	for i := range s.Segments {
		n = max(n, s.Segments[i].Device+1)
	}
	return n
}

// snapshotRecording returns the data in a snapshot about one device; nil = there is none.
func snapshotRecording(s *torchsnap.Snapshot, device int32, settings replay.Settings) *recording {
	rec := &recording{device: device, settings: settings}
	if int(device) < len(s.Devices) {
		rec.events, rec.unread = s.Devices[device], s.Unread[device]
		clear(rec.events.Mark) // the mark numbers belong to another program
		rec.events.Line = nil
	}
	rec.final = blocks(s, device, int64(rec.events.Len()), schemas.ListLast)
	if rec.listOnly = rec.events.Len() == 0; rec.listOnly && len(rec.final) == 0 {
		return nil
	}
	for i := range s.Segments {
		g := &s.Segments[i]
		if int32(g.Device) == device && g.Contradictory() {
			rec.disputed++
		}
		if len(s.Devices) > 0 && g.Device >= len(s.Devices) {
			rec.misplaced++
		}
	}
	return rec
}

// survivors returns, by address, the stacks of the blocks that are in use at the end.
func survivors(s *torchsnap.Snapshot, device int32) map[uint64]uint32 {
	out := map[uint64]uint32{}
	for i := range s.Segments {
		if int32(s.Segments[i].Device) != device {
			continue
		}
		for _, b := range s.Segments[i].Blocks {
			if b.Stack != 0 && b.State != schemas.BlockInactive {
				out[b.Address] = b.Stack
			}
		}
	}
	return out
}

// warnOfHistory adds a warning if the recording did not begin with the process, so that an earlier peak may have been
// higher. A block has a stack only if torch was recording when the block was made. So if a block with a stack has no
// allocation event, torch has dropped the event.
func (r *report) warnOfHistory(place string, rec *recording, res *replay.Result, made map[uint64]uint32) {
	if rec.listOnly || !res.Anomalies.Late() {
		return
	}
	gone := 0
	for i := range res.Allocs {
		if a := &res.Allocs[i]; a.AllocSeq == 0 && a.FreeRequestedSeq == 0 && made[a.Address] != 0 {
			gone++
		}
	}
	if gone > 0 {
		r.warn("%s: the oldest events are missing (%s no allocation event), so an earlier, higher peak may be "+
			"missing: raise max_entries of _record_memory_history", place,
			units.Plural(gone, "live block has", "live blocks have"))
		return
	}
	r.warn("%s: recording began after the first allocations: an earlier, higher peak is not in the file", place)
}

// warnOfOwners adds a warning that says for how much of the memory allocated at the peak the category is known.
func (r *report) warnOfOwners(place string, rec *recording, peak int64, joined *join.Result) {
	s := joined.SharesAt(peak)
	total := s.Stack + s.Other + s.Untraced + s.Rest
	if total == 0 {
		return
	}
	percent := func(n int64) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(total)) }
	moment := "at the peak"
	if rec.listOnly {
		moment = "when the file was written"
	}
	if s.Stack == 0 {
		r.warn("%s: no stack in the file explains any of the %s allocated %s: they are other, or untraced", place,
			units.MiB(total), moment)
		return
	}
	r.warn("%s: stacks explain %s of the %s allocated %s; %s are other, %s untraced", place,
		percent(s.Stack+s.Rest), units.MiB(total), moment, percent(s.Other), percent(s.Untraced))
}

// ReadStackRules reads a user's rules on stacks; "" means no file and returns none.
func ReadStackRules(path string) ([]schemas.StackRule, error) {
	if path == "" {
		return nil, nil
	}
	f, err := schemas.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rules, err := stackrules.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}
