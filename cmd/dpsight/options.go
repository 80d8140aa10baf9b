package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
)

// modelFlags are the options of the built-in experiments.
type modelFlags struct {
	kong.Plugins
	given reflect.Value
}

// options builds the struct that kong reads the model and training flags from. They are declared once, in the table
// that the Python side reads too; a struct written by hand would be a second declaration. Every flag is a string: the
// table knows types and ranges, and says in a sentence what is wrong.
func (c *modelFlags) options() any {
	var fields []reflect.StructField
	for _, o := range experiments.Options() {
		help := o.Help
		if o.Type == experiments.Enum {
			help += " (" + strings.Join(o.Choices, "|") + ")"
		}
		if o.Name == "preset" {
			help += "; their sizes stand above"
		}
		if o.Default != nil {
			help += fmt.Sprintf("; default %v", o.Default)
		}
		tag := fmt.Sprintf(`name:%q help:%q group:%q placeholder:%q`, strings.TrimPrefix(o.Flag, "--"), escape(help),
			"Built-in experiment: "+o.Group, strings.ToUpper(string(o.Type)))
		typ := reflect.TypeFor[*string]()
		if o.Type == experiments.Bool {
			tag += ` negatable:""`
			typ = reflect.TypeFor[*bool]()
		}
		fields = append(fields, reflect.StructField{Name: exported(o.Name), Type: typ, Tag: reflect.StructTag(tag)})
	}
	v := reflect.New(reflect.StructOf(fields))
	c.given = v
	return v.Interface()
}

// values gives the options that were set, by name.
func (c *modelFlags) values() map[string]string {
	out := map[string]string{}
	for i, o := range experiments.Options() {
		if f := c.given.Elem().Field(i); !f.IsNil() {
			out[o.Name] = fmt.Sprint(f.Elem().Interface())
		}
	}
	return out
}

// resolved completes the options of a built-in experiment, and names those that it has no use for.
func resolved(console *collect.Console, given map[string]string) (map[string]any, error) {
	if strings.Contains(given["method"], ",") {
		return nil, withHint{fmt.Errorf("--method names several methods (%s), and a run is of one", given["method"]),
			"dpsight predict takes several with --vary, as in --vary batch_size=1..512; else give them one by one, " +
				"or dpsight collect --suite FILE, which has a matrix of them"}
	}
	params, err := experiments.Resolve(given)
	if err != nil {
		return nil, err
	}
	for _, name := range experiments.Ignored(given, params) {
		console.Println(fmt.Sprintf("dpsight: note: %s has no effect on this experiment", name))
	}
	return params, nil
}

// paramOfBuiltin is the mistake of a parameter that a built-in experiment has no place for.
var paramOfBuiltin = withHint{errors.New("--param belongs to a command"), "a built-in experiment has options of its " +
	"own: --preset, --batch-size, …"}

// presets lists the sizes of the presets, for help.
func presets() string {
	var b strings.Builder
	for _, p := range experiments.Presets() {
		fmt.Fprintf(&b, "  %-8s", p.Name)
		if s := p.For("transformer"); s != nil {
			fmt.Fprintf(&b, "vocabulary %v, hidden %v, %v layers, %v heads, sequence %v, batch %v", s["vocab_size"],
				s["hidden_dim"], s["num_layers"],
				s["num_heads"], s["seq_len"], s["batch_size"])
		}
		if s := p.For("mlp"); s != nil {
			fmt.Fprintf(&b, "; MLP %v, batch %v", s["mlp_dims"], s["batch_size"])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// exported makes a Go field name of a snake_case one.
func exported(name string) string {
	var b strings.Builder
	for _, w := range strings.Split(name, "_") {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// escape keeps kong from reading a variable in help text.
func escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }
