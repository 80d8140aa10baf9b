package experiments

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

//go:embed options.json
var tableJSON []byte

// Type is the type of an option's value.
type Type string

// The types of options. A resolved value is an int64, a float64, a string, a
// bool, or (for an enum) one of its choices as a string.
const (
	Int    Type = "int"
	Float  Type = "float"
	String Type = "string"
	Bool   Type = "bool"
	Enum   Type = "enum"
)

// Option is one model or training option.
type Option struct {
	// Name is the option's name in suites and in a run's params: snake_case.
	Name string `json:"name"`
	// Flag is the option's name on the command line, dashes included.
	Flag string `json:"flag"`
	Type Type   `json:"type"`
	// Choices are the values of an enum.
	Choices []string `json:"choices,omitempty"`
	// Default is nil, a string, a bool or a float64 (also for an int). An option without a default takes its value from
	// the preset or from DefaultOf.
	Default any `json:"default"`
	// DefaultOf names an option whose value is the default of this option.
	DefaultOf string `json:"default_of,omitempty"`
	// Min is the lowest allowed number. If ExclusiveMin is set, the number must be greater than Min. Max is the highest
	// allowed number.
	Min          *float64 `json:"min,omitempty"`
	ExclusiveMin bool     `json:"exclusive_min,omitempty"`
	Max          *float64 `json:"max,omitempty"`
	// Pattern is a regular expression (RE2, and Python's re) for a string.
	Pattern string `json:"pattern,omitempty"`
	// Example is a value that matches Pattern.
	Example  string `json:"example,omitempty"`
	Required bool   `json:"required,omitempty"`
	// Only says with which values of other options this option applies: an MLP has no vocabulary, and plain training no
	// clipping norm.
	Only map[string][]string `json:"only,omitempty"`
	// Group is method, model or training, for help.
	Group string `json:"group"`
	// Help is the option's help, in one line.
	Help string `json:"help"`
}

// Preset is a named set of sizes, for each model that has the preset.
type Preset struct {
	Name        string         `json:"name"`
	Transformer map[string]any `json:"transformer,omitempty"`
	MLP         map[string]any `json:"mlp,omitempty"`
}

// For returns the preset's sizes for a model, by option name, or nil if the model does not have the preset. Numbers are
// float64, as in JSON; Resolve converts them.
func (p Preset) For(model string) map[string]any {
	switch model {
	case "transformer":
		return p.Transformer
	case "mlp":
		return p.MLP
	}
	return nil
}

// Method is a way of computing gradients.
type Method struct {
	// ID is the method's name in params, if Of is empty.
	ID string `json:"id"`
	// If this is another name of a method with the parameters in Fixes, Of is that method's id: functorch is dpsgd with
	// another grad_sample_mode. A run's parameters have the method Of, so that they state which method runs.
	Of string `json:"of,omitempty"`
	// Fixes are the values of other options that go with this method, in JSON's types. Resolve refuses other values for
	// such an option.
	Fixes map[string]any `json:"fixes,omitempty"`
	// Shown is the method's name in reports.
	Shown string `json:"shown"`
	// Aliases are further accepted names, in upper or lower case.
	Aliases []string `json:"aliases"`
}

type rule struct {
	Divides *struct {
		Divisor string `json:"divisor"`
		Number  string `json:"number"`
	} `json:"divides,omitempty"`
	// Less is fulfilled if Number is less than Times × Bound.
	Less *struct {
		Number string  `json:"number"`
		Times  float64 `json:"times"`
		Bound  string  `json:"bound"`
	} `json:"less,omitempty"`
	Refuse *struct {
		When map[string][]string `json:"when"`
		Why  string              `json:"why"`
	} `json:"refuse,omitempty"`
}

type optionTable struct {
	Options []Option `json:"options"`
	Presets []Preset `json:"presets"`
	Methods []Method `json:"methods"`
	Rules   []rule   `json:"rules"`

	byName   map[string]*Option
	patterns map[string]*regexp.Regexp
}

// table is parsed once, at its first use. The table is part of the binary, so a mistake in it is a mistake of the
// program, and the tests read every entry.
var table = func() *optionTable {
	t, err := parseTable(tableJSON)
	if err != nil {
		panic(err)
	}
	return t
}()

func parseTable(data []byte) (*optionTable, error) {
	t := &optionTable{byName: map[string]*Option{}, patterns: map[string]*regexp.Regexp{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("options.json: %w", err)
	}
	for i := range t.Options {
		o := &t.Options[i]
		if t.byName[o.Name] != nil {
			return nil, fmt.Errorf("options.json: option %s is there twice", o.Name)
		}
		t.byName[o.Name] = o
		if o.Pattern != "" {
			re, err := regexp.Compile(o.Pattern)
			if err != nil {
				return nil, fmt.Errorf("options.json: option %s: %w", o.Name, err)
			}
			t.patterns[o.Name] = re
		}
	}
	return t, nil
}

// Options returns the options in the table's order, which is also the order of Args. The caller owns the slice but
// must not change what its entries point to.
func Options() []Option { return slices.Clone(table.Options) }

// Presets returns the presets, smallest first.
func Presets() []Preset { return slices.Clone(table.Presets) }

// Methods returns all methods by name, including names that mean another method with fixed parameters (see
// [Method.Of]).
func Methods() []Method { return slices.Clone(table.Methods) }
