package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
	guess "github.com/dpsight/dpsight/schemas/near"
	"github.com/dpsight/dpsight/schemas/where"
)

// The names of the facts about a run that a --where condition may use in addition to the run's parameters.
const (
	factRun      = "run"      // the run's id
	factName     = "name"     // the run's name
	factTag      = "tag"      // any of the run's tags
	factSuite    = "suite"    // the name or the id of the run's suite
	factSource   = "source"   // measured, predicted or imported
	factStatus   = "status"   // how the run ended: ok, failed, oom, timeout, killed or partial
	factBare     = "bare"     // yes or no: the run was recorded without allocator events
	factDate     = "date"     // when the run began: a day, a moment, today or yesterday, in UTC
	factRevision = "revision" // the commit of the run's code, or the first 4 digits or more of it
	factDirty    = "dirty"    // yes or no: the run's code had changes that were not committed
	factGPU      = "gpu"      // the name of the run's first GPU
	factHost     = "host"     // the name of the run's machine
	factTorch    = "torch"    // the version of torch
	factCUDA     = "cuda"     // the version of CUDA that torch was built for
	factOpacus   = "opacus"   // the version of Opacus
	factDriver   = "driver"   // the version of the GPU's driver
	factDpsight  = "dpsight"  // the version of dpsight that recorded the run
)

// Facts returns the names that a condition may use in addition to parameters.
func Facts() []string {
	return []string{factRun, factName, factTag, factSuite, factSource, factStatus, factBare, factDate, factRevision,
		factDirty, factGPU, factHost, factTorch, factCUDA, factOpacus, factDriver, factDpsight}
}

// Where keeps the selected runs for which a condition is true.
func (sel *Selection) Where(text string) error {
	scope := filterScope{names: map[string]bool{}, begun: map[string]map[string]bool{}, today: time.Now().UTC()}
	all := make([]map[string]any, len(sel.Runs))
	for i, r := range sel.Runs {
		all[i] = factsOf(r)
		for name := range all[i] {
			scope.names[name] = true
		}
	}
	for _, name := range Facts() {
		scope.names[name] = true
	}
	condition, err := where.Parse(text, scope)
	if err != nil {
		return &WhereError{text, err}
	}
	var kept []Run
	for i, r := range sel.Runs {
		if condition(all[i]) == where.Holds {
			kept = append(kept, r)
		}
	}
	for _, asked := range slices.Sorted(maps.Keys(scope.begun)) {
		if full := slices.Sorted(maps.Keys(scope.begun[asked])); len(full) > 1 {
			return &WhereError{text, fmt.Errorf("%s is the beginning of %d revisions: %s", asked, len(full),
				schemas.Shortlist(full, fewRuns))}
		}
	}
	if len(kept) == 0 {
		return &NoneHoldsError{text, len(sel.Runs)}
	}
	sel.Runs = kept
	if sel.Chosen == "" && len(kept) > 1 { // the remaining runs are not a whole suite
		sel.Missing = nil
	}
	return nil
}

// factsOf returns a run's parameters and facts, by the names that a condition may use.
func factsOf(r Run) map[string]any {
	m := r.Manifest
	facts := maps.Clone(m.Params)
	if facts == nil {
		facts = map[string]any{}
	}
	add := func(name, value string) {
		if value != "" {
			facts[name] = value
		}
	}
	pointed := func(name string, value *string) {
		if value != nil {
			add(name, *value)
		}
	}
	if facts["method"] == nil {
		add("method", m.Name)
	}
	add(factRun, m.RunID)
	add(factName, m.Name)
	facts[factTag] = words(r.Tags) // a run without tags is known to have none
	add(factSource, m.Source)
	add(factStatus, m.Status)
	facts[factBare] = m.Bare
	if !m.Start.IsZero() {
		facts[factDate] = m.Start.UTC()
	}
	if m.Suite != nil {
		facts[factSuite] = words{m.Suite.Name, m.Suite.ID}
	}
	if m.Git != nil {
		add(factRevision, m.Git.Revision)
		facts[factDirty] = m.Git.Dirty
	}
	if len(m.GPUs) > 0 {
		add(factGPU, m.GPUs[0].Name)
	}
	add(factHost, m.Host.Name)
	if e := m.Environment; e != nil {
		add(factTorch, e.Torch)
		pointed(factCUDA, e.CUDA)
		pointed(factOpacus, e.Opacus)
	}
	pointed(factDriver, m.Driver)
	add(factDpsight, m.Collector.Version)
	return facts
}

// words are several values of one fact, such as a run's tags. A comparison is true if it is true for any of the words.
type words []string

// filterScope has the names of all facts and parameters that any of the runs has.
type filterScope struct {
	names map[string]bool
	begun map[string]map[string]bool // which revisions begin with the digits that the user gave
	today time.Time
}

// Canonical returns the name of the parameter that an option sets: batch_size for --batch-size.
func (s filterScope) Canonical(name string) string {
	if s.names[name] {
		return name
	}
	return strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
}

func (s filterScope) Has(name string) bool { return s.names[name] }

func (s filterScope) Unknown(name string) error {
	return fmt.Errorf("no run has a parameter %s%s", name, guess.Guess(name, slices.Sorted(maps.Keys(s.names))))
}

func (s filterScope) Unordered(value, name string) error {
	if name == factDate {
		return fmt.Errorf("%s is no date; a date is a day, as 2026-10-01, a moment, as 2026-10-01T08:00, today or yesterday",
			value)
	}
	return fmt.Errorf("%s is not a number: only == and != compare words", value)
}

func (s filterScope) Is(params map[string]any, name string, value any) bool {
	own, ok := params[name]
	return ok && s.Same(own, value)
}

// Same reports whether two values are the same in a condition. Same compares numbers by value, yes and true by meaning,
// revisions by their beginning, and a run's start with the day or the second in the condition.
func (s filterScope) Same(a, b any) bool {
	switch a := a.(type) {
	case words:
		return slices.Contains(a, fmt.Sprint(b))
	case time.Time:
		text := fmt.Sprint(b)
		if day, ok := s.day(text); ok {
			text = day.Format(time.DateOnly)
		}
		return text != "" && strings.HasPrefix(a.Format(time.RFC3339), text)
	case bool:
		switch strings.ToLower(fmt.Sprint(b)) {
		case "true", "yes", "on":
			return a
		case "false", "no", "off":
			return !a
		}
		return false
	}
	if x, ok := s.Number(a); ok {
		y, ok := s.Number(b)
		return ok && x == y
	}
	text, asked := fmt.Sprint(a), fmt.Sprint(b)
	const leastRevision, revision = 4, 40 // numbers of digits, as in Git
	if len(text) == revision && len(asked) >= leastRevision && len(asked) < revision && strings.HasPrefix(text, asked) {
		if s.begun[asked] == nil {
			s.begun[asked] = map[string]bool{}
		}
		s.begun[asked][text] = true
		return true
	}
	return strings.EqualFold(text, asked)
}

// day returns the beginning of a day, in UTC, from its text: a date, today or yesterday.
func (s filterScope) day(name string) (time.Time, bool) {
	today := s.today.Truncate(24 * time.Hour)
	switch strings.ToLower(name) {
	case "today":
		return today, true
	case "yesterday":
		return today.AddDate(0, 0, -1), true
	}
	return time.Time{}, false
}

// Number returns the number that < and > compare. For a day it is the time at which the day begins, in seconds.
func (s filterScope) Number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case time.Time:
		return float64(v.UnixMilli()) / 1000, true
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil && f == f {
			return f, true
		}
		if day, ok := s.day(v); ok {
			return float64(day.UnixMilli()) / 1000, true
		}
		for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
			if t, err := time.Parse(layout, v); err == nil {
				return float64(t.UnixMilli()) / 1000, true
			}
		}
	}
	return 0, false
}

// A WhereError says that a --where condition cannot be parsed, or names something unknown.
type WhereError struct {
	Text string
	Err  error
}

func (e *WhereError) Error() string { return fmt.Sprintf("--where %q: %v", e.Text, e.Err) }

func (e *WhereError) Unwrap() error { return e.Err }

// Hint returns an example of a condition.
func (*WhereError) Hint() string {
	return "as in --where 'method=ghost and seq_len>=8192 and date>2026-10-01'"
}

// A NoneHoldsError says that a condition is true of no run.
type NoneHoldsError struct {
	Text string
	Runs int
}

func (e *NoneHoldsError) Error() string {
	return fmt.Sprintf("--where %q: it is true of none of %d runs", e.Text, e.Runs)
}

// Hint returns the command that lists the values of runs.
func (*NoneHoldsError) Hint() string { return "dpsight runs lists the runs with what tells them apart" }
