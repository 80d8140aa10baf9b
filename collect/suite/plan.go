package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Plan returns the plan of the suite. r says which runs the store already has, and may be nil. resuming is true if the
// store's runs are not made again.
func (s *Suite) Plan(r *Resumption, resuming bool) schemas.Plan {
	doc := schemas.Plan{Schema: schemas.PlanSchema, Name: s.Name, Baseline: s.maskedBaseline(),
		TimeoutS: s.Timeout.Seconds(), CooldownS: s.Cooldown.Seconds(),
		Varies: s.varying(), LeftOut: s.LeftOut, Runs: len(s.Tasks()), Experiments: []schemas.PlanExperiment{}}
	doc.Todo = doc.Runs
	if r != nil {
		doc.SuiteID = &r.Suite.ID
		if resuming {
			doc.Todo = len(r.Todo)
		}
	}
	for _, x := range s.Experiments {
		row := schemas.PlanExperiment{Name: x.Name, Params: x.secrets(s).Params(x.Params), Bare: x.Bare,
			Command: x.secrets(s).Command(x.Command), Repeats: x.Repeats, Key: x.Key,
			Todo: x.Repeats, Again: []string{}}
		if r != nil {
			row.Done, row.Failed = r.Done(x)
			if resuming {
				row.Todo, row.Again = r.todo(x)
			}
		}
		doc.Done += row.Done
		doc.Experiments = append(doc.Experiments, row)
	}
	return doc
}

// varying returns the parameters whose values differ between experiments, in the order of the options.
func (s *Suite) varying() []string {
	names := []string{}
	e := expansion{scope: s.scope}
	for _, name := range s.scope.names {
		if name != bareName && e.varies(s.Experiments, name) && !s.follows(name) {
			names = append(names, name)
		}
	}
	if slices.ContainsFunc(s.Experiments, func(x *Experiment) bool { return x.Bare != s.Experiments[0].Bare }) {
		names = append(names, bareName)
	}
	return names
}

// secrets returns the secrets in an experiment's command, parameters and environment. Documents must not contain them.
func (x *Experiment) secrets(s *Suite) *mask.Secrets {
	return mask.Gather(x.Command, entries(s.Environment), x.Params)
}

// maskedBaseline returns the suite's baseline with secrets masked, or nil without a baseline.
func (s *Suite) maskedBaseline() map[string]any {
	if s.Baseline == nil {
		return nil
	}
	return mask.Gather(nil, entries(s.Environment), s.Baseline).Params(s.Baseline)
}

// follows reports whether, in all experiments, an option has the same value as the option that gives its default.
func (s *Suite) follows(name string) bool {
	of := ""
	if s.scope.builtin {
		for _, o := range experiments.Options() {
			if o.Name == name {
				of = o.DefaultOf
			}
		}
	}
	return of != "" && !slices.ContainsFunc(s.Experiments, func(x *Experiment) bool {
		return x.Params[name] != nil && x.Params[name] != x.Params[of]
	})
}

// Document returns the suite's document, without runs.
func (s *Suite) Document(id string, created time.Time) *store.Suite {
	doc := &store.Suite{ID: id, Name: s.Name, Created: created.UTC(), Baseline: s.maskedBaseline()}
	if len(s.Environment) > 0 {
		doc.Environment = s.MaskedEnvironment()
	}
	for _, x := range s.Experiments {
		params := x.secrets(s).Params(x.Params)
		if x.Bare {
			params[bareName] = true
		}
		doc.Experiments = append(doc.Experiments, store.Experiment{Key: x.Key, Name: x.Name, Params: params,
			Repeats: x.Repeats, RunIDs: []string{}})
	}
	return doc
}

// Select returns the suite with only the experiments that --only selects. Each choice has the form name=value. Several
// choices with one name are alternatives. An experiment must match one choice for each name. The names name and bare
// can be used besides parameters. The baseline stays the same.
func (s *Suite) Select(choices []string) (*Suite, error) {
	wanted := map[string][]string{}
	for _, c := range choices {
		name, value, ok := strings.Cut(c, "=")
		if name = s.scope.canonical(strings.TrimSpace(name)); !ok || name == "" {
			return nil, &collect.UsageError{Problem: fmt.Sprintf("--only %s has no value", c),
				Advice: "as in --only method=ghost --only batch_size=8"}
		}
		if name != nameKey && !s.scope.has(name) {
			return nil, &collect.UsageError{Problem: "--only: " + s.scope.unknown(name).Error(),
				Advice: "--only also takes name and bare"}
		}
		wanted[name] = append(wanted[name], strings.TrimSpace(value))
	}
	left := *s
	left.Experiments, left.whole = nil, s.Experiments
	for _, x := range s.Experiments {
		params := with(x.Params, x.Bare)
		matched := true
		for name, values := range wanted {
			matched = matched && slices.ContainsFunc(values, func(v string) bool {
				if name == nameKey {
					return v == x.Name
				}
				return s.scope.is(params, name, v)
			})
		}
		if matched {
			left.Experiments = append(left.Experiments, x)
		}
	}
	if len(left.Experiments) == 0 {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("no experiment of suite %s has %s", s.Name,
			strings.Join(choices, ", ")),
			Advice: "--dry-run lists them"}
	}
	return &left, nil
}
