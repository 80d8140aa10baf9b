package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/resultjson"
	"github.com/dpsight/dpsight/schemas"
)

type exportCmd struct {
	storeFlag
	Names  []string `arg:"" optional:"" name:"run" help:"Runs or stores (default: the newest suite or run)."`
	Format string   `help:"What to write: ${enum}." enum:"result-json" default:"result-json" placeholder:"FORMAT"`
	Out    string   `short:"o" help:"File for one run, folder for several (default: stdout for one run)." placeholder:"FILE|DIR"`
}

func (exportCmd) Help() string { return help("export") }

func (c *exportCmd) Run(s *streams) error {
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	folder := len(runs.Runs) > 1 || strings.HasSuffix(c.Out, "/") ||
		strings.HasSuffix(c.Out, string(filepath.Separator))
	if st, err := os.Stat(c.Out); err == nil && st.IsDir() {
		folder = true
	}
	if folder && c.Out == "" {
		return withHint{fmt.Errorf("%d runs do not go into one file", len(runs.Runs)),
			"name a folder with -o, or one run"}
	}
	var profiles []analyze.ComponentProfile
	err = runs.Each(schemas.WantAll, false, func(in schemas.Tables) error {
		profiles = append(profiles, analyze.Profile(in))
		return nil
	})
	if err != nil {
		return err
	}
	if c.Out == "" {
		return resultjson.New(profiles[0]).Write(s.out)
	}
	if !folder {
		return cannotExport(schemas.WriteFile(c.Out, resultjson.New(profiles[0]).Write))
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return cannotExport(err)
	}
	for i, name := range resultjson.FileNames(profiles) {
		path := filepath.Join(c.Out, name)
		if err := schemas.WriteFile(path, resultjson.New(profiles[i]).Write); err != nil {
			return cannotExport(err)
		}
		fmt.Fprintln(s.out, path)
	}
	return nil
}

func cannotExport(err error) error {
	if err == nil {
		return nil
	}
	var p *os.PathError
	if errors.As(err, &p) {
		err = fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return withHint{fmt.Errorf("the export cannot be written: %w", err), "name another file or folder with -o"}
}
