package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect/experiments"
)

// bareName is a parameter of all experiments: whether only counters and timers are recorded.
const bareName = "bare"

// methodName is a parameter of built-in experiments. Some of its values have several names.
const methodName = "method"

// A scope says which parameters a suite's experiments may have: the options of the built-in experiments or, for a
// suite with its own command, any name that its entries use.
type scope struct {
	builtin bool
	names   []string
}

func newScope(d *document) *scope {
	s := &scope{builtin: len(d.Command) == 0, names: []string{bareName}}
	if s.builtin {
		for _, o := range experiments.Options() {
			s.names = append(s.names, o.Name)
		}
		return s
	}
	for _, entry := range slices.Concat([]fields{d.Defaults, d.Matrix}, d.Experiments, d.Include) {
		for _, f := range entry {
			if !slices.Contains(s.names, f.name) && f.name != nameKey && f.name != repeatsKey {
				s.names = append(s.names, f.name)
			}
		}
	}
	return s
}

// canonical returns a parameter's name as runs' parameters have it.
func (s *scope) canonical(name string) string {
	if s.builtin {
		return strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
	}
	return name
}

func (s *scope) has(name string) bool { return slices.Contains(s.names, name) }

// unknown returns the error for a name that is no parameter.
func (s *scope) unknown(name string) error {
	if s.builtin {
		// The table of options finds the most similar name.
		if _, err := experiments.Resolve(map[string]string{name: "1"}); err != nil {
			return err
		}
	}
	return fmt.Errorf("no experiment has a parameter %s; known: %s", name, strings.Join(s.names[1:], ", "))
}

// resolve completes an experiment's parameters. For a suite with its own command, the parameters are those of the
// entries, in YAML's types.
func (s *scope) resolve(given map[string]scalar) (map[string]any, error) {
	if !s.builtin {
		return typedAll(given), nil
	}
	text := map[string]string{}
	for name, v := range given {
		text[name] = v.text
	}
	return experiments.Resolve(text)
}

func typedAll(given map[string]scalar) map[string]any {
	params := map[string]any{}
	for name, v := range given {
		params[name] = v.typed()
	}
	return params
}

// with adds the names other than parameters that a constraint or a choice may use.
func with(params map[string]any, bare bool) map[string]any {
	out := maps.Clone(params)
	out[bareName] = bare
	return out
}

// words gives [where.Parse] the names of a scope.
type words struct{ *scope }

func (w words) Canonical(name string) string { return w.canonical(name) }
func (w words) Has(name string) bool         { return w.has(name) }
func (w words) Unknown(name string) error    { return w.unknown(name) }
func (w words) Same(a, b any) bool           { return w.same("", a, b) }

func (w words) Unordered(value, _ string) error {
	return fmt.Errorf("%s is not a number: only == and != compare words", value)
}

func (w words) Is(params map[string]any, name string, value any) bool {
	return w.is(params, name, value)
}

func (w words) Number(value any) (float64, bool) { return number(value) }
