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
	// DefaultOf names the option whose value is this one's default.
	DefaultOf string `json:"default_of,omitempty"`
	// Min is the least number allowed; the number itself is excluded if ExclusiveMin is set. Max is the largest number
	// allowed.
	Min          *float64 `json:"min,omitempty"`
	ExclusiveMin bool     `json:"exclusive_min,omitempty"`
	Max          *float64 `json:"max,omitempty"`
	// Pattern is a regular expression (RE2, and Python's re) for a string.
	Pattern string `json:"pattern,omitempty"`
	// Example is a value that matches Pattern.
	Example  string `json:"example,omitempty"`
	Required bool   `json:"required,omitempty"`
	// Only says which values of other options this option belongs to: an MLP
	// has no vocabulary, and plain training no clipping norm.
	Only map[string][]string `json:"only,omitempty"`
	// Group is method, model or training, for help.
	Group string `json:"group"`
	// Help is one line.
	Help string `json:"help"`
}

// Preset is a named set of sizes for each model that has one.
type Preset struct {
	Name        string         `json:"name"`
	Transformer map[string]any `json:"transformer,omitempty"`
	MLP         map[string]any `json:"mlp,omitempty"`
}

// For returns the preset's sizes for a model, by option name, or nil if it has none. Numbers are float64, as in
// JSON; Resolve converts them.
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
	// Of is the id of the method for which this is another name, with the parameters in Fixes: functorch is dpsgd with
	// another grad_sample_mode. Params name the method of Of, so that they say what runs.
	Of string `json:"of,omitempty"`
	// Fixes are the values of other options that go with this method, as JSON has them. Resolve refuses another value
	// for such an option.
	Fixes map[string]any `json:"fixes,omitempty"`
	// Shown is the method's name in reports.
	Shown string `json:"shown"`
	// Aliases are further names that are accepted, whatever their case.
	Aliases []string `json:"aliases"`
}

type rule struct {
	Divides *struct {
		Divisor string `json:"divisor"`
		Number  string `json:"number"`
	} `json:"divides,omitempty"`
	// Less holds if Number is less than Times × Bound.
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

// table is parsed once. The table is part of the binary, so a mistake in it is a mistake of the program, and the tests
// read every entry.
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

// Methods returns all methods known by name, also those that are another one
// with fixed parameters (see [Method.Of]).
func Methods() []Method { return slices.Clone(table.Methods) }
