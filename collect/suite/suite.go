// Package suite runs lists of built-in experiments: one process each, one after another, on a device that is free in between.
//
// A suite is a YAML file:
//
//	name: headline
//	baseline: {method: vanilla}
//	timeout: 10m                     # of each experiment; optional
//	defaults: {preset: seed}         # options of every experiment; optional
//	experiments:
//	  - {method: vanilla}
//	  - {method: ghost, bare: true, name: ghost-bare}
//
// Besides name and bare an experiment has the options of package experiments. An option that does not apply to
// a method or model may stand in the defaults.
package suite

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
)

//go:embed suites/*.yaml
var builtin embed.FS

// A Suite is a plan: every experiment is complete and valid.
type Suite struct {
	Name        string
	Baseline    map[string]any // parameters that mark the baseline's experiments
	Timeout     time.Duration  // of each experiment; 0 = none
	Experiments []Experiment
}

// An Experiment is one run to make.
type Experiment struct {
	Name   string
	Params map[string]any // complete, as experiments.Resolve gives them
	Bare   bool
	// Key is a hash of Params and Bare: the same experiment has the same key in every suite.
	Key        string
	Repetition int // from 0: how often the key came before in the suite
}

type document struct {
	Name        string              `yaml:"name"`
	Baseline    map[string]scalar   `yaml:"baseline"`
	Timeout     string              `yaml:"timeout"`
	Defaults    map[string]scalar   `yaml:"defaults"`
	Experiments []map[string]scalar `yaml:"experiments"`
}

// A scalar is a value's text as it stands in the file: 1e-4 stays what the user wrote.
type scalar string

func (s *scalar) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return fmt.Errorf("line %d: a value must be a number, a word or true or false", n.Line)
	}
	*s = scalar(n.Value)
	return nil
}

// Names lists the built-in suites.
func Names() []string {
	files, err := fs.Glob(builtin, "suites/*.yaml")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	return files
}

// Load reads a suite by the name of a built-in one, or from a file. Errors are [collect.UsageError].
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
		return nil, &collect.UsageError{Problem: fmt.Sprintf("no suite %s", nameOrPath),
			Hint: "give a file, or one of the built-in suites: " + strings.Join(Names(), ", ")}
	}
	if err != nil {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("suite %s cannot be read: %v", nameOrPath, err)}
	}
	return Parse(filepath.Base(nameOrPath), b)
}

// Parse reads a suite and completes its experiments. label names the file in errors.
func Parse(label string, text []byte) (*Suite, error) {
	fail := func(format string, args ...any) (*Suite, error) {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("suite %s: ", label) + fmt.Sprintf(format, args...),
			Hint: "keys: name, baseline, timeout, defaults, experiments"}
	}
	var d document
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		if err == io.EOF {
			return fail("it is empty")
		}
		return fail("%s", plainError(err))
	}
	if err := dec.Decode(new(document)); err != io.EOF {
		return fail("it has more than one document")
	}
	s := &Suite{Name: d.Name}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(label, filepath.Ext(label))
	}
	if d.Timeout != "" {
		t, err := time.ParseDuration(d.Timeout)
		if err != nil || t <= 0 {
			return fail("timeout %q is no duration such as 90s or 10m", d.Timeout)
		}
		s.Timeout = t
	}
	if len(d.Experiments) == 0 {
		return fail("it has no experiments")
	}
	seen := map[string]int{}
	for i, given := range d.Experiments {
		x, err := complete(d.Defaults, given)
		if err != nil {
			return fail("experiment %d: %v", i+1, err)
		}
		x.Repetition = seen[x.Key]
		seen[x.Key]++
		s.Experiments = append(s.Experiments, x)
	}
	if err := s.setBaseline(d.Baseline); err != nil {
		return fail("%v", err)
	}
	return s, nil
}

// plainError is yaml's error in one line.
func plainError(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.ReplaceAll(text, "field ", "unknown key ")
	return strings.ReplaceAll(text, " not found in type suite.document", "")
}

// complete makes an experiment of what its entry and the defaults say.
func complete(defaults, given map[string]scalar) (Experiment, error) {
	options := map[string]string{}
	for name, v := range defaults {
		options[name] = string(v)
	}
	var x Experiment
	for name, v := range given {
		switch name {
		case "name":
			x.Name = string(v)
		case "bare":
			switch v {
			case "true":
				x.Bare = true
			case "false":
			default:
				return x, fmt.Errorf("bare must be true or false, not %q", v)
			}
		default:
			options[name] = string(v)
		}
	}
	var err error
	if x.Params, err = experiments.Resolve(options); err != nil {
		return x, err
	}
	if x.Name == "" {
		x.Name = nameOf(x, given)
	}
	x.Key, err = key(x)
	return x, err
}

// nameOf makes a name of the method and what else the experiment's own entry says.
func nameOf(x Experiment, given map[string]scalar) string {
	parts := []string{fmt.Sprint(x.Params["method"])}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if name == "method" || name == "bare" || name == "name" {
			continue
		}
		value := fmt.Sprint(x.Params[strings.ReplaceAll(name, "-", "_")])
		if _, ok := x.Params[name].(string); !ok {
			value = name + value
		}
		parts = append(parts, value)
	}
	if x.Bare {
		parts = append(parts, "bare")
	}
	return collect.SafeName(strings.Join(parts, "-"))
}

// key hashes what the experiment is. JSON writes the keys of maps in order.
func key(x Experiment) (string, error) {
	b, err := json.Marshal(struct {
		Params map[string]any `json:"params"`
		Bare   bool           `json:"bare"`
	}{x.Params, x.Bare})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// setBaseline gives the baseline's values the types and names that params have, and checks that it is there.
func (s *Suite) setBaseline(given map[string]scalar) error {
	if len(given) == 0 {
		return nil
	}
	s.Baseline = map[string]any{}
	for name, v := range given {
		s.Baseline[name] = string(v)
		if name == "method" {
			if p, err := experiments.Resolve(map[string]string{"method": string(v)}); err == nil {
				s.Baseline[name] = p[name]
			}
		}
	}
	for _, x := range s.Experiments {
		matched := true
		for name, v := range s.Baseline {
			matched = matched && fmt.Sprint(x.Params[name]) == fmt.Sprint(v)
		}
		if matched {
			for name := range s.Baseline {
				s.Baseline[name] = x.Params[name]
			}
			return nil
		}
	}
	return errors.New("no experiment matches the baseline")
}
