package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/dpsight/dpsight/schemas/near"
)

// ConfigFile is the file in which a repository keeps settings that every command line would otherwise repeat.
const ConfigFile = "dpsight.yaml"

// Config is the content of a [ConfigFile].
type Config struct {
	Check GateConfig
}

// GateConfig has the thresholds of "dpsight check" that apply if the command line does not give others.
type GateConfig struct {
	Floor      ConfigValue
	Thresholds []ConfigThreshold // in the order of the file, the thresholds for all experiments first
}

// ConfigThreshold is one threshold as the file writes it.
type ConfigThreshold struct {
	Experiment string // a glob of experiments' names; empty = all
	Metric     string
	Ratio      ConfigValue
}

// ConfigValue is a value from a configuration file with its place in the file, such as "dpsight.yaml:7". Text is empty
// if the file sets no value.
type ConfigValue struct{ Text, Place string }

// FindConfig reads the named file or, without a name, the [ConfigFile] of the current folder. If the current folder
// has no [ConfigFile], FindConfig returns a Config without settings.
func FindConfig(name string) (*Config, error) {
	path := name
	if path == "" {
		path = ConfigFile
	}
	text, err := os.ReadFile(path)
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		return new(Config), nil
	}
	if err != nil {
		return nil, WithHint(fmt.Errorf("the configuration: %w", err), "name a file that can be read")
	}
	config, err := parseConfig(path, text)
	if err != nil {
		return nil, WithHint(err, "below check: there may be floor, thresholds and experiments, as docs/check.md shows")
	}
	return config, nil
}

// configReader reads the nodes of a file strictly: anything unknown is an error with its line.
type configReader struct{ path string }

func parseConfig(path string, text []byte) (*Config, error) {
	r, config := configReader{path}, new(Config)
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil {
		if errors.Is(err, io.EOF) { // an empty file, or one of comments
			return config, nil
		}
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return config, r.mapping(document.Content[0], map[string]func(*yaml.Node) error{
		// The thresholds of dpsight check.
		"check": func(n *yaml.Node) error { return r.check(n, &config.Check) },
	})
}

func (r configReader) check(n *yaml.Node, c *GateConfig) error {
	var own []ConfigThreshold // thresholds for single experiments
	err := r.mapping(n, map[string]func(*yaml.Node) error{
		// The size up to which a category that is absent from the baseline may grow, such as 1MiB.
		"floor": func(n *yaml.Node) (err error) {
			c.Floor, err = r.value(n)
			return err
		},
		// The ratio that each metric may grow to, such as "peak: 1.05", for all experiments.
		"thresholds": func(n *yaml.Node) error { return r.thresholds(n, "", &c.Thresholds) },
		// Thresholds of some experiments, below a name or a pattern of names.
		"experiments": func(n *yaml.Node) error {
			return r.pairs(n, func(key, value *yaml.Node) error { return r.thresholds(value, key.Value, &own) })
		},
	})
	c.Thresholds = append(c.Thresholds, own...)
	return err
}

func (r configReader) thresholds(n *yaml.Node, experiment string, to *[]ConfigThreshold) error {
	return r.pairs(n, func(key, value *yaml.Node) error {
		ratio, err := r.value(value)
		*to = append(*to, ConfigThreshold{experiment, key.Value, ratio})
		return err
	})
}

// mapping reads a mapping and rejects unknown keys.
func (r configReader) mapping(n *yaml.Node, known map[string]func(*yaml.Node) error) error {
	names := slices.Sorted(maps.Keys(known))
	return r.pairs(n, func(key, value *yaml.Node) error {
		read := known[key.Value]
		if read == nil {
			return r.errorf(key, "there is no key %q here%s", key.Value, near.Guess(key.Value, names))
		}
		return read(value)
	})
}

// pairs reads a mapping, and returns an error if a key occurs twice.
func (r configReader) pairs(n *yaml.Node, read func(key, value *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" { // a key with nothing below it
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return r.errorf(n, "a mapping of names to values is wanted here")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || seen[key.Value] {
			return r.errorf(key, "%q is no name, or stands here twice", key.Value)
		}
		seen[key.Value] = true
		if err := read(key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r configReader) value(n *yaml.Node) (ConfigValue, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return ConfigValue{}, r.errorf(n, "a single value is wanted here")
	}
	return ConfigValue{n.Value, r.place(n)}, nil
}

func (r configReader) place(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.path, n.Line) }

func (r configReader) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %s", r.place(n), fmt.Sprintf(format, args...))
}
