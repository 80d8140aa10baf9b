package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
)

// An Acknowledged is an acknowledgement in the baseline that has no effect on the check, with the reason.
type Acknowledged struct {
	Label string
	schemas.Acknowledgement
	Idle Idle
}

// Idle is the reason why an acknowledgement has no effect.
type Idle string

// The values of [Idle].
const (
	IdleExpired  Idle = "expired"
	IdleExceeded Idle = "exceeded" // the metric is worse than what was acknowledged
	IdleUnneeded Idle = "unneeded" // the metric is within its threshold, or not compared
)

// acknowledge lets exceeded metrics pass if an acknowledgement in the baseline covers them on the day of the check.
// acknowledge returns the acknowledgements that have no effect.
func (x *Experiment) acknowledge(list []schemas.Acknowledgement, today string) (idle []Acknowledged) {
	for _, a := range list {
		why := IdleUnneeded
		for i := range x.Comparisons {
			c := &x.Comparisons[i]
			switch {
			case c.Metric != a.Metric || c.Verdict != VerdictExceeded:
			case a.Until < today:
				why = IdleExpired
			case c.worseThan(a.UpTo):
				why = IdleExceeded
			default:
				c.Verdict, c.Acknowledged, why = VerdictAcknowledged, &a, ""
			}
		}
		if why == IdleUnneeded && a.Until < today {
			why = IdleExpired
		}
		if why != "" {
			idle = append(idle, Acknowledged{x.Label, a, why})
		}
	}
	return idle
}

// worst returns the worst value of a metric that an acknowledgement would let pass.
func (c *Comparison) worst() float64 {
	if c.CurrentHigh != nil {
		return *c.CurrentHigh
	}
	return *c.Current
}

func (c *Comparison) worseThan(limit float64) bool {
	if m, err := compare.ParseMetric(c.Metric); err == nil && m.More() {
		return *c.Current < limit
	}
	return c.worst() > limit
}

// Acknowledge records in a baseline that values which a check found exceeded are accepted. Each entry of the list
// names a metric, such as "peak@ghost*" for some experiments. An entry for a metric that the check did not find
// exceeded is an error. An entry replaces an earlier acknowledgement of the same metric. as gives the reason, author
// and date.
func Acknowledge(b *schemas.Baseline, r *Result, list []string, as schemas.Acknowledgement, today string) error {
	switch day, err := time.Parse(time.DateOnly, as.Until); {
	case err != nil:
		return fmt.Errorf("--until %q is no date like 2026-12-31", as.Until)
	case day.Format(time.DateOnly) < today:
		return fmt.Errorf("--until %s is in the past", as.Until)
	case strings.TrimSpace(as.Why) == "":
		return errors.New("an acknowledgement says why, and no --why is given")
	case strings.TrimSpace(as.By) == "":
		return errors.New("an acknowledgement says by whom, and no --by is given")
	}
	for _, text := range list {
		name, experiment, _ := strings.Cut(text, "@")
		if _, err := parseMetric(name); err != nil {
			return fmt.Errorf("--acknowledge %q: %w", text, err)
		}
		found := false
		for i := range b.Experiments {
			x := &r.Experiments[i] // in the order of the baseline
			if experiment != "" && !matches(experiment, x.Name) && !matches(experiment, x.Label) {
				continue
			}
			for k := range x.Comparisons {
				c := &x.Comparisons[k]
				if !matches(name, c.Metric) || c.Verdict != VerdictExceeded && c.Verdict != VerdictAcknowledged {
					continue
				}
				a, e := as, &b.Experiments[i]
				a.Metric, a.UpTo, found = c.Metric, c.worst(), true
				e.Acknowledged = slices.DeleteFunc(e.Acknowledged, func(o schemas.Acknowledgement) bool {
					return o.Metric == a.Metric
				})
				e.Acknowledged = append(e.Acknowledged, a)
			}
		}
		if !found {
			return fmt.Errorf("--acknowledge %q: nothing of that name is worse than its threshold allows", text)
		}
	}
	return nil
}
