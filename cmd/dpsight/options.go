package main

import (
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

// values gives the options that were set, by name; nil where none was.
func (c *modelFlags) values() (set map[string]string) {
	for i, o := range experiments.Options() {
		if f := c.given.Elem().Field(i); !f.IsNil() {
			if set == nil {
				set = map[string]string{}
			}
			set[o.Name] = fmt.Sprint(f.Elem().Interface())
		}
	}
	return set
}

// resolved completes the options of a built-in experiment, and names those that it has no use for.
func resolved(console *collect.Console, given map[string]string) (map[string]any, error) {
	params, err := experiments.ResolveOne(given)
	if err != nil {
		return nil, err
	}
	for _, name := range experiments.Ignored(given, params) {
		console.Println(fmt.Sprintf("dpsight: note: %s has no effect on this experiment", name))
	}
	return params, nil
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
