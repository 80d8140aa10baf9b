package main

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

// The default numbers of points in a timeline: on a screen, and in a plot of any width.
const (
	peoplePoints   = 20
	programsPoints = 1000
)

type timelineCmd struct {
	analysis
	Device string `help:"Show only this device, as in cuda:1 (default: all)." placeholder:"DEVICE"`
	Step   *int64 `help:"Show only the events of step N; steps count from 0." placeholder:"N"`
	From   *int64 `help:"First event to show; 0 is the state before the first event." placeholder:"EVENT"`
	To     *int64 `help:"Last event to show." placeholder:"EVENT"`
	Points *int   `help:"${points}" placeholder:"N"`
}

func (timelineCmd) Help() string { return help("timeline") }

func (c *timelineCmd) Run(s *streams) error {
	within := timeline.EventRange{Device: c.Device, Step: c.Step, From: c.From, To: c.To}
	if err := within.Check(); err != nil {
		return withHint(err, "as in --step 3, or --from 1000 --to 2000; steps count from 0")
	}
	points := peoplePoints
	if c.Format == "csv" || c.Format == "json" {
		points = programsPoints
	}
	if c.Points != nil {
		points = *c.Points
	}
	if points < 0 {
		return withHint(fmt.Errorf("--points %d: must be 0 or more", points), "as in --points 100; 0 is a point "+
			"after every event")
	}
	timeline := func(r *selected.Runs) (timeline.CategoryTimelineDocument, error) { return r.Timeline(within, points) }
	return showRecords(s, &c.analysis, timeline, report.CategoryTimelineTables, report.CategoryTimelineRecords)
}
