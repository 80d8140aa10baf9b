package ingest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// snapshotKind is the kind of an imported memory snapshot.
const snapshotKind = "torch snapshot"

// snapshotFile is the copy of the snapshot in an imported run's spool folder, so that the run can be ingested again.
const snapshotFile = "snapshot.pickle.zst"

const hint = "record with torch 2.10 or later: torch.cuda.memory._record_memory_history() before the first use of " +
	"the GPU, " +
	"torch.cuda.memory._dump_snapshot(FILE) at the end"

// refusal is an input that is sound, but not for us.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// importSnapshot makes a run of a snapshot file.
func importSnapshot(path, store string, o Options) (out Outcome, err error) {
	sum, err := hashOf(path)
	if err != nil {
		return out, err
	}
	s, err := readSnapshot(path)
	if err != nil {
		return out, err
	}
	m := snapshotManifest(path, sum, s, o)
	dir := filepath.Join(store, m.RunID)
	if out = outcome(path, dir, o); out.State == schemas.IngestKnown {
		return out, nil
	}
	_, statErr := os.Stat(dir)
	if err := os.MkdirAll(filepath.Join(dir, spool.Dir), 0o755); err != nil {
		return out, err
	}
	defer func() {
		if err != nil && os.IsNotExist(statErr) {
			os.RemoveAll(dir)
		}
	}()
	if err := keep(path, filepath.Join(dir, spool.Dir, snapshotFile)); err != nil {
		return out, err
	}
	if err := schemas.WriteManifest(dir, m); err != nil {
		return out, err
	}
	_, err = snapshotTables(dir, m, s, o)
	return out, err
}

// ingestSnapshot ingests an imported run again, from its own copy.
func ingestSnapshot(dir string, m *schemas.Manifest, o Options) (*schemas.IngestReport, error) {
	s, err := readSnapshot(filepath.Join(dir, spool.Dir, snapshotFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, refuse("the run was imported from %s, of which it keeps no copy: ingest that file again",
			m.Import.File)
	}
	if err != nil {
		return nil, err
	}
	return snapshotTables(dir, m, s, o)
}

func hashOf(path string) (string, error) {
	f, err := os.Open(path)
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

// readSnapshot reads a snapshot that can be attributed: with a history, by a torch that dpsight knows.
func readSnapshot(path string) (*torchsnap.Snapshot, error) {
	s, err := torchsnap.ReadFile(path, torchsnap.Options{})
	if err != nil {
		return nil, err
	}
	events := 0
	for i := range s.Devices {
		events += s.Devices[i].Len()
	}
	switch {
	case events == 0:
		return nil, refuse("the snapshot holds no allocator events; %s", hint)
	case !slices.Contains(s.TraceKeys, "user_metadata"):
		return nil, refuse("the snapshot was written by a torch older than 2.10 (its events have no user_metadata); %s",
			hint)
	}
	return s, nil
}

// snapshotManifest describes the run that a snapshot becomes. The same file gives the same id.
func snapshotManifest(path, sum string, s *torchsnap.Snapshot, o Options) *schemas.Manifest {
	first, last := int64(0), int64(0)
	for i := range s.Devices {
		if t := s.Devices[i].TimeNS; len(t) > 0 && t[0] > 0 {
			if first == 0 || t[0] < first {
				first = t[0]
			}
			last = max(last, t[len(t)-1])
		}
	}
	stamp, start := "00000000T000000Z", time.Time{}
	var end *time.Time
	if first > 0 {
		start = time.Unix(0, first).UTC()
		stamp = start.Format("20060102T150405Z")
		e := time.Unix(0, last).UTC()
		end = &e
	}
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".zst", ".pickle", ".pkl"} {
		name = strings.TrimSuffix(name, suffix)
	}
	name = sanitize(name)
	warnings := []string{}
	if first == 0 {
		warnings = append(warnings, "the snapshot has no times")
	}
	return &schemas.Manifest{RunID: fmt.Sprintf("%s-%s-%s", stamp, name, sum[:6]), Name: name, Source: schemas.Imported,
		Status:  schemas.StatusOK,
		Command: []string{}, Params: map[string]any{}, Start: start, End: end, GPUs: []schemas.GPU{},
		Warnings:  warnings,
		Collector: schemas.Collector{Version: o.Version, Uninjected: []string{}},
		Import:    &schemas.Import{Kind: snapshotKind, File: filepath.Base(path), SHA256: sum}}
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

// keep copies a snapshot, compressed.
func keep(path, to string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	head, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return err
	}
	return schemas.WriteFile(to, func(w io.Writer) error {
		var from io.Reader = in
		switch {
		case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")): // zstd already
			_, err := io.Copy(w, in)
			return err
		case bytes.HasPrefix(head, []byte("\x1f\x8b")):
			g, err := gzip.NewReader(in)
			if err != nil {
				return err
			}
			from = g
		}
		z, err := zstd.NewWriter(w)
		if err != nil {
			return err
		}
		if _, err := io.Copy(z, from); err != nil {
			z.Close()
			return err
		}
		return z.Close()
	})
}

// snapshotTables derives the tables of an imported run. Without marks there is one phase, of which no rule tells
// what a block is for.
func snapshotTables(dir string, m *schemas.Manifest, s *torchsnap.Snapshot, o Options) (*schemas.IngestReport, error) {
	settings, err := replaySettings(s.Settings)
	if err != nil {
		return nil, err
	}
	r := newReport(m, o)
	ctx := join.NewContext(&join.Rank{RunID: m.RunID, Steps: steps.Derive(nil, nil), Untimed: true})
	err = write(dir, r, func(t *tables) error {
		var devices []join.Device
		var recs []*recording
		for d := range s.Devices {
			if s.Devices[d].Len() == 0 {
				continue
			}
			rec := &recording{device: int32(d), events: s.Devices[d], settings: settings}
			clear(rec.events.Mark) // numbers of somebody else's
			rec.final = blocks(s, rec.device, int64(rec.events.Len()), schemas.ListLast)
			res, v, err := rec.replayed()
			if err != nil {
				return fmt.Errorf("device %d: %w", d, err)
			}
			r.anomalies(0, rec, res)
			r.failuresOf(rec)
			r.Devices = append(r.Devices, v)
			recs = append(recs, rec)
			devices = append(devices, join.Device{Device: rec.device, Events: &rec.events, Replay: res})
		}
		joined, _ := join.Join(ctx, devices)
		for i, j := range joined {
			r.Devices[i].InstrumentedPeakSeq = j.InstrumentedPeakSeq
			if err := t.add(m.RunID, 0, recs[i], devices[i].Replay, j); err != nil {
				return err
			}
		}
		t.addStacks(m.RunID, 0, s.Stacks)
		r.warn("the file says nothing of phases and tensors: what its blocks are for is not known, and they are " +
			"other, or untraced")
		r.sum()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r.IngestReport, nil
}
