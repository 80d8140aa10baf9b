package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// hostName replaces the name of every host.
const hostName = "gpu-host"

// sanitize cleans all runs of a store and returns their number. sanitize derives the tables again even if raw then
// deletes them. If a journal could no longer be ingested, it must not be published.
func sanitize(store string, raw bool) (int, error) {
	manifests, err := filepath.Glob(filepath.Join(store, "*", schemas.ManifestFile))
	if err != nil {
		return 0, err
	}
	if len(manifests) == 0 {
		return 0, fmt.Errorf("no run in %s", store)
	}
	c := newCleaner()
	for _, m := range manifests {
		if err := c.run(filepath.Dir(m)); err != nil {
			return 0, fmt.Errorf("%s: %w", filepath.Base(filepath.Dir(m)), err)
		}
		// The summary was made from the manifest and report before they were rewritten, so sanitize removes it. The
		// next command makes it again.
		if err := os.Remove(filepath.Join(filepath.Dir(m), schemas.SummaryFile)); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if !raw {
			continue
		}
		for _, name := range ingest.DerivedFiles() {
			if err := os.Remove(filepath.Join(filepath.Dir(m), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
		}
	}
	return len(manifests), nil
}

func (c *cleaner) run(dir string) error {
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return err
	}
	c.files = map[string]string{}
	host := m.Host.Name
	if host == hostName { // an earlier pass has replaced the name
		host = ""
	}
	m.Host.Name, m.Git = hostName, nil
	if m.Tables == nil { // an older version of dpsight wrote no digests, so sanitize adds them
		if m.Tables, err = schemas.TableDigests(dir, schemas.SampledTables()...); err != nil {
			return err
		}
	}
	if err := schemas.WriteManifest(dir, m); err != nil {
		return err
	}
	clean := func(b []byte) ([]byte, error) {
		b, err := c.json(schemas.Unsigned(b), host)
		if err != nil {
			return nil, err
		}
		return schemas.Signed(b)
	}
	if err := rewrite(filepath.Join(dir, schemas.ManifestFile), clean); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		if err := rewrite(log, func(b []byte) ([]byte, error) {
			return []byte(c.text(string(b), host)), nil
		}); err != nil {
			return err
		}
	}
	journals, err := spool.SealedJournals(filepath.Join(dir, spool.Dir))
	if err != nil {
		return err
	}
	for _, journal := range journals {
		if err := c.journal(journal, host); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(journal), err)
		}
	}
	// The tables contain UUIDs too, so they are derived again.
	o := ingest.Options{Again: true}
	if report, err := schemas.ReadIngestReport(dir); err == nil {
		o.Version = report.Version
	}
	_, err = ingest.Run(dir, o)
	return err
}

func rewrite(path string, edit func([]byte) ([]byte, error)) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	clean, err := edit(b)
	if err != nil {
		return err
	}
	if bytes.Equal(clean, b) {
		return nil
	}
	return schemas.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(clean)
		return err
	})
}

// journal cleans the texts of a sealed journal. The texts of a journal are its JSON, and the stacks of allocator
// events. Marks, tags and times are numbers and stay as they are.
func (c *cleaner) journal(path, host string) error {
	marks, frames, err := spool.Unpack(path)
	if err != nil {
		return err
	}
	all, err := spool.ScanFrames(frames)
	if err != nil {
		return err
	}
	out := spool.AppendHeader(nil)
	for _, f := range all {
		payload := f.Payload
		switch {
		case f.Type == spool.FrameAllocator:
			if payload, err = pickle.Rewrite(payload, func(s string) string { return c.frame(s, host) }); err != nil {
				return fmt.Errorf("the allocator's events: %w", err)
			}
		case f.Type == spool.FrameLines: // a frame of lines has whole paths, which may contain spaces
			if payload, err = literally(payload, func(s string) string { return c.frame(s, host) }); err != nil {
				return err
			}
		case json.Valid(payload):
			if payload, err = c.json(payload, host); err != nil {
				return err
			}
		}
		out = spool.AppendFrame(out, f.Type, payload)
	}
	if bytes.Equal(out, frames) {
		return nil
	}
	return schemas.WriteFile(path, func(w io.Writer) error { return spool.Pack(w, marks, out) })
}
