package suite

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/dpsight/dpsight/collect/experiments"
)

// A scalar is a value as it is written in the file: 1e-4 stays 1e-4.
type scalar struct {
	text string
	tag  string // YAML's tag: !!int, !!float, !!bool or !!str
}

func (s *scalar) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return fmt.Errorf("line %d: a value must be a number, a word or true or false", n.Line)
	}
	s.text, s.tag = n.Value, n.ShortTag()
	return nil
}

// typed returns the value in a command's parameter type: an int64, a float64, a bool or a string.
func (s scalar) typed() any {
	switch s.tag {
	case "!!int":
		if n, err := strconv.ParseInt(s.text, 0, 64); err == nil {
			return n
		}
	case "!!float":
		if f, err := strconv.ParseFloat(s.text, 64); err == nil {
			return f
		}
	case "!!bool":
		if b, ok := truth(s.text); ok {
			return b
		}
	}
	return s.text
}

func truth(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// number returns a value's number. A text counts as a number only if it is written as one, as in --only batch_size=8.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil && f == f
	}
	return 0, false
}

// same reports whether two values of a parameter are equal: numbers by value, booleans by meaning, methods by any of
// their names, and other values by their text.
func (s *scope) same(name string, a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	v, w := fmt.Sprint(a), fmt.Sprint(b)
	x, ok1 := truth(v)
	y, ok2 := truth(w)
	if ok1 && ok2 {
		return x == y
	}
	return v == w || s.builtin && name == methodName && method(v) == method(w)
}

// is reports whether an experiment's parameter has a value. A method's name that implies other parameters, as functorch
// does for dpsgd, requires these parameters too. If a refused experiment lacks the implied parameters, the experiment's
// own name for the method supplies them.
func (s *scope) is(params map[string]any, name string, value any) bool {
	p, ok := params[name]
	if !ok || !s.same(name, p, value) {
		return false
	}
	if !s.builtin || name != methodName {
		return true
	}
	own := fixed(fmt.Sprint(p))
	for option, asked := range fixed(fmt.Sprint(value)) {
		has, ok := params[option]
		if !ok {
			has, ok = own[option]
		}
		if !ok || !s.same(option, has, asked) {
			return false
		}
	}
	return true
}

// fixed returns the other parameters that a method's name implies.
func fixed(name string) map[string]any {
	for _, m := range experiments.Methods() {
		if m.Of != "" && strings.EqualFold(strings.ReplaceAll(name, "-", "_"), m.ID) {
			return m.Fixes
		}
	}
	return nil
}

// method returns the id of a method with any name. An unknown name is returned unchanged.
func method(name string) string {
	if p, err := experiments.Resolve(map[string]string{methodName: name}); err == nil {
		return p[methodName].(string)
	}
	return name
}
