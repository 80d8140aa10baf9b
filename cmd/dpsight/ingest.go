package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

type ingestCmd struct {
	storeFlag
	formatFlag
	Again bool     `help:"Ingest again what was ingested before: rules improve, journals stay."`
	Paths []string `arg:"" name:"path" help:"Snapshots (.pickle), run folders, stores, or folders of them."`
}

func (ingestCmd) Help() string {
	return `A run that dpsight collected is ingested when it ends. This is for runs whose collector was killed, for old runs after the
rules have improved, and for memory snapshots of torch 2.10 or later that were recorded from the start.

Examples:
  dpsight ingest runs/20261121T101500Z-ghost-3f9a1c
  dpsight ingest --again examples/headline
  dpsight ingest snapshot.pickle --store runs`
}

// ingestDocument is what "dpsight ingest --format json" prints.
type ingestDocument struct {
	Schema string        `json:"schema"`
	Inputs []ingestInput `json:"inputs"`
}

type ingestInput struct {
	Path   string   `json:"path"`
	RunIDs []string `json:"run_ids"`
	State  string   `json:"state"`  // new, known or refused
	Again  bool     `json:"again"`  // new tables of what had been ingested before
	Reason *string  `json:"reason"` // why it was refused, else null
}

func (c *ingestCmd) Run(s *streams) error {
	doc := ingestDocument{Schema: "dpsight.ingest/1", Inputs: []ingestInput{}}
	if err := schemas.CheckFolder(c.Store); err != nil {
		return cannotWrite(c.Store, err)
	}
	defer ingest.Frugal()()
	var refused []string
	for _, path := range c.Paths {
		outcomes, err := ingest.Import(path, c.Store, ingest.Options{Version: version, Again: c.Again,
			Confide: analyze.Confide, Prepare: prepare})
		if err != nil {
			return cannotWrite(c.Store, err)
		}
		for _, o := range outcomes {
			in := ingestInput{Path: o.Path, RunIDs: []string{}, State: o.State, Again: o.Again}
			if o.RunID != "" {
				in.RunIDs = append(in.RunIDs, o.RunID)
			}
			if o.State == ingest.StateRefused {
				refused, in.Reason = append(refused, o.Path+": "+o.Reason), &o.Reason
			}
			doc.Inputs = append(doc.Inputs, in)
		}
	}
	t := table.Table{Title: "Ingested", Document: doc, Columns: []table.Column{{Title: "Path", Key: "path"},
		{Title: "Run", Key: "run_id"},
		{Title: "State", Key: "state"}, {Key: "again", For: table.Programs}, {Title: "Reason", Key: "reason"}}}
	for _, in := range doc.Inputs {
		run := table.Absent()
		if len(in.RunIDs) > 0 {
			run = table.Text(in.RunIDs[0])
		}
		state := table.Text(in.State)
		if in.Again {
			state.Text = "again"
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(in.Path), run, state, table.Text(strconv.FormatBool(in.Again)),
			table.Optional(in.Reason, table.Text)})
	}
	if err := table.Write(s.out, c.Format, t); err != nil {
		return err
	}
	switch n := len(refused); {
	case n == 1:
		return withHint{errors.New(refused[0]), ingestHint}
	case n > 1:
		return withHint{fmt.Errorf("%d of %d inputs were refused, the first being %s", n, len(doc.Inputs), refused[0]),
			ingestHint}
	}
	return nil
}

const ingestHint = "it takes run folders, stores, and memory snapshots that torch 2.10 or later recorded from the " +
	"start; " +
	"nothing was written for what it refused"

// cannotWrite says that the store is at fault.
func cannotWrite(dir string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return withHint{fmt.Errorf("the store %s cannot be written: %w", dir, err), "name another folder with --store"}
}

// prepare joins the samples that a killed collector left in segments, unless the collector is still at work.
func prepare(dir string) error {
	if collect.Running(dir) {
		return errors.New("the run is still being collected")
	}
	return collect.MergeSegments(dir)
}
