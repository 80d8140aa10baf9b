package grammar

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/collect/experiments"
)

// builtin is the beginning of the title of each group of options of the built-in experiments.
const builtin = "Built-in experiment"

// ModelFlags are the options of the built-in experiments.
type ModelFlags struct {
	kong.Plugins
	given reflect.Value
}

// Options builds the struct from which kong reads the model and training flags. The Python programs read the same
// table, so each flag is declared once. A handwritten struct would declare the flags a second time. Every flag is a
// string here: the table knows types and ranges, and its errors are sentences.
func (c *ModelFlags) Options() any {
	var fields []reflect.StructField
	for _, o := range experiments.Options() {
		help, predictor := o.Help, ""
		if o.Type == experiments.Enum {
			help += " (" + strings.Join(o.Choices, "|") + ")"
		}
		if predicts(o.Name) {
			predictor = fmt.Sprintf(` predictor:%q`, o.Name)
		}
		if o.Name == "preset" {
			help += "; their sizes stand above"
		}
		if o.Default != nil {
			help += fmt.Sprintf("; default %v", o.Default)
		}
		tag := fmt.Sprintf(`name:%q help:%q group:%q placeholder:%q`, strings.TrimPrefix(o.Flag, "--"), escape(help),
			builtin+": "+o.Group, strings.ToUpper(string(o.Type))) + predictor
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

// Values returns the values of the options that the user set, by name, or nil if none was set.
func (c *ModelFlags) Values() (set map[string]string) {
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

// exported makes a Go field name from a name in snake_case.
func exported(name string) string {
	var b strings.Builder
	for _, w := range strings.Split(name, "_") {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// escape keeps kong from reading "$" in help text as the beginning of a variable.
func escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }
