package main

import (
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

type ingestCmd struct {
	storeFlag
	formatFlag
	Again bool     `help:"Ingest runs again, with the present rules, that were ingested before."`
	Ranks bool     `help:"${ingest_ranks}"`
	Rules string   `help:"${rules}" placeholder:"FILE"`
	Paths []string `arg:"" name:"path" help:"${path}"`
}

func (ingestCmd) Help() string { return help("ingest") }

func (c *ingestCmd) Run(s *streams) error {
	if err := schemas.CheckFolder(c.Store); err != nil {
		return collect.StoreError(c.Store, err)
	}
	defer ingest.Frugal()()
	rules, err := ingest.ReadStackRules(c.Rules)
	if err != nil {
		return withHint(err, "as in - {category: inputs, file: my_loader/}; docs/snapshots.md has roles and categories")
	}
	console := newConsole(s.err)
	var remade selected.Remade
	o := ingest.Options{Version: version, Again: c.Again, Ranks: c.Ranks, StackRules: rules, Prepare: collect.Recover,
		Remake: remade.Before, Begin: console.Reading}
	doc, err := ingest.ImportAll(c.Paths, c.Store, o)
	console.Done()
	if err != nil {
		return collect.StoreError(c.Store, err)
	}
	if err := judge(doc.Dirs...); err != nil {
		return err
	}
	remade.Tell(&doc)
	if err := table.Write(s.out, c.Format, report.IngestedTables(doc, c.Format)...); err != nil {
		return err
	}
	if next := s.source(c.Store).AfterIngest(doc); next != "" {
		s.say("go on with " + next)
	}
	return report.IngestFailure(doc)
}

// judge writes each predicted run's confidence into its report, and the summaries of all named runs.
func judge(dirs ...string) error {
	for _, dir := range dirs {
		if err := store.SetConfidence(dir, report.Confidence); err != nil {
			return withHint(err, "its tables are there; dpsight ingest "+dir+" judges it once the folder can be written")
		}
	}
	selected.WriteSummaries(dirs...)
	return nil
}
