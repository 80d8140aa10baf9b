// Package suite runs lists of experiments, by default one at a time (see [Options]). Before each run, it waits until
// the GPU is free.
//
// A suite is a YAML file:
//
//	name: headline-batch
//	baseline: {method: vanilla}      # what the others are compared with
//	repeats: 5                       # of each experiment, interleaved: A B C A B C …
//	timeout: 10m                     # of each run
//	cooldown: 5s                     # a pause before each run, after the GPU was found free
//	environment: {PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True"}
//	defaults: {preset: small, seq_len: 512, precision: bf16}
//	matrix:                          # every combination, the first name varying slowest
//	  method: [vanilla, dpsgd, ghost]
//	  batch_size: [8, 32]
//	  bare: [false, true]
//	exclude: [{method: [dpsgd, ghost], batch_size: 32}]
//	where: physical_batch_size <= batch_size
//	experiments: [{method: flash, batch_size: 16}]          # further ones
//	include: [{method: ghost, batch_size: 32, name: big}]   # not subject to exclude and where
//
// At least one of matrix, experiments and include is required. All other keys are optional. An experiment's entry has
// the options of package experiments, and may have its own name, bare and repeats. The defaults may contain options
// that do not apply to some methods or models.
//
// An experiment is left out if every key of an exclude entry matches it. A list matches if one of its values matches.
// An experiment is also left out if a constraint under where is false for it. where is one constraint, several
// constraints separated by commas, or a list of them. A constraint consists of comparisons of parameters, numbers and
// words, of and, or, not, and of parentheses. A constraint on a parameter that an experiment does not have does not
// exclude it.
//
// A suite with its own command may use any parameter names:
//
//	command: [python, train.py, --method, "{method}", --bs, "{batch_size}"]
//	matrix: {method: [sgd, dp], batch_size: [8, 32]}
//
// Experiments are named after the parameters that vary. The key names sets another pattern for the names:
package suite

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas/near"
)

//go:embed suites/*.yaml
var builtin embed.FS

// A Suite is a list of complete and valid experiments to run.
type Suite struct {
	Name        string
	Baseline    map[string]any // the parameters by which experiments are the baseline
	Timeout     time.Duration  // time limit of each run; 0 means none
	Cooldown    time.Duration  // a pause before each run except the first, after the device was found free
	Environment map[string]string
	Record      string        // steps of a run that have events; nil means the agent's default
	RecordSteps *int          // numbers of steps, all different
	Experiments []*Experiment // experiments of which no two are the same
	// LeftOut is the number of experiments that exclude and where have removed.
	LeftOut int

	scope *scope
	whole []*Experiment // all experiments of the file if Experiments is a selection, else nil
}

// The values of [Suite.Record]. Other repetitions are bare. That is enough for times and peaks, and takes a hundredth
// of the disk space.
const (
	RecordAll   = "all"
	RecordFirst = "first" // the first repeat of each experiment: after one round all experiments have a breakdown
	// RecordOne records the events of one repeat of each experiment, in a round that depends on the experiment's
	// content. A machine may be slower in the first round than in others, which must not look like a cost of recording.
	RecordOne = "one"
)

// records reports whether a run records the allocator's events.
func (s *Suite) records(t Task) bool {
	switch s.Record {
	case RecordFirst:
		return t.Repetition == 0
	case RecordOne:
		return t.Repetition == t.recorded()
	}
	return true
}

// recorded returns the repetition that has allocator events, if the experiment has one. Which one depends only on the
// experiment's content, since the file may be reordered before the suite is resumed. If repeats were added since, it is
// the same repetition or a new one, since other existing repeats may have no events.
func (x *Experiment) recorded() int {
	best, highest := 0, []byte(nil)
	for r := range x.Repeats {
		if h := sha256.Sum256(fmt.Appendf(nil, "%s %d", x.Key, r)); bytes.Compare(h[:], highest) > 0 {
			best, highest = r, h[:]
		}
	}
	return best
}

// An Experiment is a command or a built-in experiment that is run once or several times.
type Experiment struct {
	Name   string
	Params map[string]any // all parameters, as from experiments.Resolve; for a suite with its own command, as in the file
	Bare   bool
	// Command is the user's command, or nil for a built-in experiment.
	Command []string
	// Key is a hash of the content: the same experiment has the same key in every suite.
	Key     string
	Repeats int

	cell cell
}

// A Task is one run to make.
type Task struct {
	*Experiment
	Repetition int // number of the repetition, from 0
}

// Title returns the run's name: the experiment's name and the number of the repetition.
func (t Task) Title() string {
	if t.Repeats == 1 {
		return t.Name
	}
	return fmt.Sprintf("%s (repetition %d of %d)", t.Name, t.Repetition+1, t.Repeats)
}

// ReportFolder returns the default folder for the suite's report in a store.
func (s *Suite) ReportFolder(store string) string {
	return filepath.Join(store, "report-"+collect.SafeName(s.Name))
}

// Names lists the built-in suites.
func Names() []string {
	files, err := fs.Glob(builtin, "suites/*.yaml")
	if err != nil {
		panic(err) // the pattern is a valid constant
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	slices.Sort(files) // with its ending, a name would come after a longer name that continues with a dash
	return files
}

// Load reads a built-in suite by its name, or a suite's file. Its errors are [collect.UsageError].
func Load(nameOrPath string) (*Suite, error) {
	if slices.Contains(Names(), nameOrPath) {
		b, err := builtin.ReadFile("suites/" + nameOrPath + ".yaml")
		if err != nil {
			return nil, err
		}
		return Parse(nameOrPath, b)
	}
	b, err := os.ReadFile(nameOrPath)
	if errors.Is(err, fs.ErrNotExist) {
		meant := near.Word(nameOrPath, Names())
		if meant != "" {
			meant = "did you mean " + meant + "? "
		}
		return nil, &collect.UsageError{Problem: fmt.Sprintf("no suite %s", nameOrPath),
			Advice: meant + "give a file, or one of the built-in suites: " + strings.Join(Names(), ", ")}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if err != nil {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("suite %s cannot be read: %v", nameOrPath, err),
			Advice: "a suite is a YAML file, or the name of a built-in one"}
	}
	return Parse(filepath.Base(nameOrPath), b)
}

// Parse reads a suite and completes its experiments. label names the file in errors.
func Parse(label string, text []byte) (*Suite, error) {
	d, err := decode(text)
	if err == nil {
		if d.Name == "" {
			d.Name = strings.TrimSuffix(label, filepath.Ext(label))
		}
		var s *Suite
		if s, err = newSuite(d); err == nil {
			return s, nil
		}
	}
	hint := "docs/suites.md has a suite with every key"
	var conflict *experiments.ConflictError
	switch {
	case errors.As(err, &conflict):
		hint = "exclude or where can leave an experiment out"
	case errors.Is(err, errUnknownKey):
		hint = documentKeys
	}
	return nil, &collect.UsageError{Problem: fmt.Sprintf("suite %s: %v", label, err), Advice: hint}
}

func newSuite(d *document) (*Suite, error) {
	s := &Suite{Environment: map[string]string{}}
	var err error
	if s.Timeout, err = duration("timeout", d.Timeout); err != nil {
		return nil, err
	}
	if s.Cooldown, err = duration("cooldown", d.Cooldown); err != nil {
		return nil, err
	}
	switch d.Record {
	case "":
		s.Record = RecordAll
	case RecordAll, RecordFirst, RecordOne:
		s.Record = d.Record
	default:
		return nil, fmt.Errorf("record must be all, first or one, not %s", d.Record)
	}
	if d.RecordSteps > 0 {
		n := int(d.RecordSteps)
		s.RecordSteps = &n
	}
	for _, v := range d.Environment {
		switch {
		case strings.ContainsAny(v.name, "=\x00"):
			return nil, fmt.Errorf("line %d: %q cannot name an environment variable", v.line, v.name)
		case v.name == "CUDA_VISIBLE_DEVICES", strings.HasPrefix(v.name, "DPSIGHT_"):
			// The collector itself must know such a variable, before the first run.
			return nil, fmt.Errorf("line %d: set %s in dpsight's own environment, not in a suite", v.line, v.name)
		}
		s.Environment[v.name] = v.values[0].text
	}
	s.Name = mask.Gather(nil, entries(s.Environment), nil).Label(d.Name)
	e, err := newExpansion(d)
	if err != nil {
		return nil, err
	}
	s.scope = e.scope
	list, out, err := e.expand()
	if err != nil {
		return nil, err
	}
	s.LeftOut = out
	for _, x := range list {
		if x.Key, err = e.key(x, s.Environment); err != nil {
			return nil, err
		}
	}
	if s.Experiments, err = merged(list); err != nil {
		return nil, err
	}
	runs := 0
	for _, x := range s.Experiments {
		if runs += min(x.Repeats, largest+1); runs > largest {
			return nil, fmt.Errorf("the suite has more than %d runs", largest)
		}
	}
	if err := e.nameAll(s, s.Experiments); err != nil {
		return nil, err
	}
	return s, s.setBaseline(d.Baseline)
}

func duration(key, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d == 0 && key == "timeout" {
		return 0, fmt.Errorf("%s %q is not a duration, such as 90s or 10m", key, text)
	}
	return d, nil
}

// Tasks returns the runs, with repetitions interleaved, so that a drift of the machine affects all experiments alike.
func (s *Suite) Tasks() []Task {
	most := 0
	for _, x := range s.Experiments {
		most = max(most, x.Repeats)
	}
	var tasks []Task
	for r := range most {
		for _, x := range s.Experiments {
			if r < x.Repeats {
				tasks = append(tasks, Task{x, r})
			}
		}
	}
	return tasks
}

// MaskedEnvironment returns the suite's environment with secrets masked.
func (s *Suite) MaskedEnvironment() map[string]string {
	return mask.Gather(nil, entries(s.Environment), nil).Environment(s.Environment)
}

// setBaseline converts the baseline's values to the types of parameters, and checks that it matches some experiment.
func (s *Suite) setBaseline(given fields) error {
	for _, x := range s.Experiments {
		params := with(x.Params, x.Bare)
		baseline := map[string]any{}
		if slices.ContainsFunc(given, func(f field) bool { return !s.scope.is(params, f.name, f.values[0].typed()) }) {
			continue
		}
		for _, f := range given {
			baseline[f.name] = params[f.name]
			if s.scope.builtin && f.name == methodName {
				for option := range fixed(f.values[0].text) {
					baseline[option] = params[option]
				}
			}
		}
		if len(given) > 0 {
			s.Baseline = baseline
		}
		return nil
	}
	return errors.New("no experiment matches the baseline")
}
