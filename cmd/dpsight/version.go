package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
)

// version is the release. [collect.Built] returns the commit that the binary was built from.
const version = "0.1.0"

type versionCmd struct {
	JSON bool `name:"json" help:"Print as JSON."`
}

// versionFlag is the option --version, which does the same as the command version.
type versionFlag bool

func (versionFlag) BeforeReset(app *kong.Kong) error {
	if err := (&versionCmd{}).Run(&streams{out: app.Stdout, err: app.Stderr}); err != nil {
		return err
	}
	app.Exit(exitDone)
	return nil
}

func (versionCmd) Help() string { return help("version") }

func (c *versionCmd) Run(s *streams) error {
	v := struct {
		Version string `json:"version"`
		schemas.Built
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{version, collect.Built(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if c.JSON {
		return json.NewEncoder(s.out).Encode(v)
	}
	_, err := fmt.Fprintf(s.out, "dpsight %s (%s%s, %s)\n", v.Version, v.Commit(), v.Go, v.Platform)
	return err
}
