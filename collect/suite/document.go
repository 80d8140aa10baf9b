package suite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// document is the content of a suite's file.
type document struct {
	Name        string   `yaml:"name"`         // name of the suite; defaults to the file's name
	Baseline    fields   `yaml:"baseline"`     // parameters of the experiments that others are compared with
	Repeats     count    `yaml:"repeats"`      // runs of each experiment; defaults to 1
	Record      string   `yaml:"record"`       // which repeats have allocator events: all, one or first
	RecordSteps count    `yaml:"record_steps"` // how many steps of a run have events
	Timeout     string   `yaml:"timeout"`      // time limit of each run, such as 10m
	Cooldown    string   `yaml:"cooldown"`     // a pause before each run except the first, such as 5s
	Environment fields   `yaml:"environment"`  // variables for the experiments
	Command     []string `yaml:"command"`      // the user's own command, with parameters in braces
	Names       string   `yaml:"names"`        // a pattern of the experiments' names, with parameters in braces
	Defaults    fields   `yaml:"defaults"`     // parameters of all experiments
	Matrix      fields   `yaml:"matrix"`       // lists of values; every combination is an experiment
	Exclude     []fields `yaml:"exclude"`      // experiments that are left out
	Where       texts    `yaml:"where"`        // conditions that experiments have to meet
	Experiments []fields `yaml:"experiments"`  // further experiments, one in each entry
	Include     []fields `yaml:"include"`      // further experiments, to which exclude and where do not apply
}

const documentKeys = "keys: name, baseline, repeats, record, record_steps, timeout, cooldown, environment, command, " +
	"names, defaults, matrix, exclude, where, experiments, include"

// Keys of an experiment's entry other than its parameters and bare.
const (
	nameKey    = "name"
	repeatsKey = "repeats"
)

// fields is a mapping in the order of the file, which determines the order of the experiments.
type fields []field

// A field is a name with one or more values. Where lists are not allowed, it has one value.
type field struct {
	name   string
	values []scalar
	list   bool
	line   int
}

func (f *fields) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: names with values belong here, as in {method: ghost, batch_size: 8}", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		one := field{name: key.Value, line: key.Line}
		if key.Kind != yaml.ScalarNode || key.Value == "" {
			return fmt.Errorf("line %d: a name must be a word", key.Line)
		}
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		items := []*yaml.Node{value}
		if one.list = value.Kind == yaml.SequenceNode; one.list {
			items = value.Content
		}
		one.values = make([]scalar, len(items))
		for i, item := range items { // the decoder would leave out a null in a list
			if err := one.values[i].UnmarshalYAML(item); err != nil {
				return err
			}
		}
		for _, other := range *f {
			if other.name == one.name {
				return fmt.Errorf("line %d: %s is already defined at line %d", key.Line, one.name, other.line)
			}
		}
		*f = append(*f, one)
	}
	return nil
}

// rename replaces all fields' names by the parameters' usual names.
func (f fields) rename(canonical func(string) string) error {
	for i := range f {
		f[i].name = canonical(f[i].name)
		for _, other := range f[:i] {
			if other.name == f[i].name {
				return fmt.Errorf("line %d: %s is already defined at line %d", f[i].line, f[i].name, other.line)
			}
		}
	}
	return nil
}

// single returns an error if a field has a list of values.
func (f fields) single() error {
	for _, one := range f {
		if one.list {
			return fmt.Errorf(
				"line %d: a value must be a number, a word or true or false; lists belong in the matrix", one.line)
		}
	}
	return nil
}

// count is a whole number of at least 1. 0 means that none was given.
type count int

func (c *count) UnmarshalYAML(n *yaml.Node) error {
	v, err := parseCount(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return fmt.Errorf("line %d: a whole number from 1 belongs here, not %q", n.Line, n.Value)
	}
	*c = v
	return nil
}

func parseCount(text string) (count, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("must be a whole number from 1, not %q", text)
	}
	return count(n), nil
}

// texts is a text or a list of texts.
type texts []string

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// decode reads a suite's file. decode's errors have one line.
func decode(text []byte) (*document, error) {
	d := &document{}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(d); err != nil {
		if err == io.EOF {
			return nil, errors.New("the file is empty")
		}
		return nil, plainError(err)
	}
	if err := dec.Decode(new(document)); err != io.EOF {
		return nil, errors.New("the file has more than one document")
	}
	return d, nil
}

var errUnknownKey = errors.New("unknown key")

// plainError returns yaml's error as one line.
func plainError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s%w %s", m[1], errUnknownKey, m[2])
	}
	for _, r := range []struct{ old, new string }{
		{"cannot unmarshal ", ""}, {"!!seq into", "a list into"}, {"!!map into", "a mapping into"},
		{" into []string", " is no list of words"}, {" into []suite.fields", " is no list of experiments"},
		{" into string", " is no word"}, {" into suite.document", " is no suite"},
	} {
		text = strings.ReplaceAll(text, r.old, r.new)
	}
	return errors.New(tags.ReplaceAllString(text, ""))
}

var (
	unknownKey = regexp.MustCompile(`^(.*)field (.*) not found in type suite\.document$`)
	tags       = regexp.MustCompile(`!!\w+ `)
)
