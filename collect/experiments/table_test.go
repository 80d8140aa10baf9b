package experiments

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTableIsSound(t *testing.T) {
	snake, flags := regexp.MustCompile(`^[a-z][a-z_]*$`), map[string]bool{}
	for _, o := range Options() {
		if !snake.MatchString(o.Name) {
			t.Errorf("%s is no snake_case name", o.Name)
		}
		if want := "--" + strings.ReplaceAll(o.Name, "_", "-"); o.Flag != want || flags[o.Flag] {
			t.Errorf("%s: flag %s, want %s, once", o.Name, o.Flag, want)
		}
		flags[o.Flag] = true
		if !slices.Contains([]string{"method", "model", "training"}, o.Group) {
			t.Errorf("%s: unknown group %s", o.Name, o.Group)
		}
		if o.Help == "" || strings.Contains(o.Help, "\n") {
			t.Errorf("%s: help must be one line", o.Name)
		}
		if (o.Type == Enum) != (len(o.Choices) > 0) {
			t.Errorf("%s: type %s with choices %v", o.Name, o.Type, o.Choices)
		}
		if o.Pattern != "" && !regexp.MustCompile(o.Pattern).MatchString(o.Example) {
			t.Errorf("%s: example %s does not match", o.Name, o.Example)
		}
		for other := range o.Only {
			if table.byName[other] == nil {
				t.Errorf("%s: only for option %s, which is unknown", o.Name, other)
			}
		}
		if o.DefaultOf != "" && table.byName[o.DefaultOf] == nil {
			t.Errorf("%s: default of %s, which is unknown", o.Name, o.DefaultOf)
		}
		if o.Default != nil {
			if _, err := parseValue(o, text(o.Default)); err != nil {
				t.Errorf("default: %v", err)
			}
		}
	}
	for _, p := range Presets() {
		for _, model := range table.byName["model"].Choices {
			for name, value := range p.For(model) {
				o := table.byName[name]
				if o == nil {
					t.Errorf("preset %s: unknown option %s", p.Name, name)
				} else if _, err := parseValue(*o, text(value)); err != nil {
					t.Errorf("preset %s: %v", p.Name, err)
				}
			}
		}
	}
	for _, m := range Methods() {
		if m.Of != "" && !slices.Contains(methodIDs(), m.Of) {
			t.Errorf("%s is %s, which is no method", m.ID, m.Of)
		}
		for name, value := range m.Fixes {
			o := table.byName[name]
			if o == nil {
				t.Errorf("method %s: unknown option %s", m.ID, name)
			} else if _, err := parseValue(*o, text(value)); err != nil {
				t.Errorf("method %s: %v", m.ID, err)
			}
		}
	}
}

// Each rule of options.json is about options and values that exist, since any other rule would never apply.
func TestRulesAreSound(t *testing.T) {
	for _, r := range table.Rules {
		kinds, names := 0, []string{}
		if d := r.Divides; d != nil {
			kinds, names = kinds+1, append(names, d.Divisor, d.Number)
		}
		if l := r.Less; l != nil {
			kinds, names = kinds+1, append(names, l.Number, l.Bound)
		}
		if f := r.Refuse; f != nil {
			kinds, names = kinds+1, append(names, slices.Collect(maps.Keys(f.When))...)
			for name, values := range f.When {
				for _, value := range values {
					if o := table.byName[name]; name == "method" && !slices.Contains(methodIDs(), value) {
						t.Errorf("a rule refuses method %s, which is none", value)
					} else if o != nil {
						if _, err := parseValue(*o, value); err != nil {
							t.Errorf("a rule refuses what cannot be given: %v", err)
						}
					}
				}
			}
		}
		for _, name := range names {
			if table.byName[name] == nil {
				t.Errorf("a rule is about option %s, which is unknown", name)
			}
		}
		if kinds != 1 {
			t.Errorf("rule %+v must have one kind", r)
		}
	}
	for _, o := range Options() {
		for _, method := range o.Only["method"] {
			if !slices.Contains(methodIDs(), method) {
				t.Errorf("%s: only for method %s, which is none", o.Name, method)
			}
		}
	}
}

// Resolve accepts every method with every preset that has sizes for the model.
func TestEveryPresetResolves(t *testing.T) {
	for _, p := range Presets() {
		for _, model := range table.byName["model"].Choices {
			if p.For(model) == nil {
				continue
			}
			for _, m := range Methods() {
				_, err := Resolve(map[string]string{"method": m.ID, "preset": p.Name, "model": model})
				if err != nil {
					t.Errorf("%s %s %s: %v", m.ID, model, p.Name, err)
				}
			}
		}
	}
}

func TestNamesOfMethodsAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, m := range Methods() {
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			if other, ok := seen[strings.ToLower(name)]; ok {
				t.Errorf("%s names both %s and %s", name, other, m.ID)
			}
			seen[strings.ToLower(name)] = m.ID
		}
	}
}

func TestParseTableRefusesMistakes(t *testing.T) {
	for _, text := range []string{
		`{`,
		`{"options":[{"name":"a","tpye":"int"}]}`,
		`{"options":[{"name":"a"},{"name":"a"}]}`,
		`{"options":[{"name":"a","pattern":"("}]}`,
	} {
		if _, err := parseTable([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
