package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version is the release; builds from a checkout add the revision.
const version = "0.1.0"

type versionCmd struct {
	JSON bool `name:"json" help:"Print as JSON."`
}

// versionFlag is --version, which most programs have: it prints what the command does.
type versionFlag bool

func (versionFlag) BeforeReset(app *kong.Kong) error {
	if err := (&versionCmd{}).Run(&streams{out: app.Stdout, err: app.Stderr}); err != nil {
		return err
	}
	app.Exit(exitDone)
	return nil
}

func (versionCmd) Help() string {
	return `Examples:
  dpsight version
  dpsight version --json`
}

func (c *versionCmd) Run(s *streams) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision,omitempty"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" {
				v.Revision = kv.Value
			}
		}
	}
	if c.JSON {
		return json.NewEncoder(s.out).Encode(v)
	}
	_, err := fmt.Fprintf(s.out, "dpsight %s (%s, %s)\n", v.Version, v.Go, v.Platform)
	return err
}
