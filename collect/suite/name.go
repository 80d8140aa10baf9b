package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/mask"
)

// nameAll names each experiment that has no name: by its method, and by the values in its entry that vary in the suite.
// All names differ, since a report identifies experiments by name. No name contains a secret, since folders and
// documents show it.
func (e *expansion) nameAll(s *Suite, list []*Experiment) error {
	varies := map[string]bool{}
	for _, name := range e.scope.names {
		varies[name] = e.varies(list, name)
	}
	taken := map[string]*Experiment{}
	for _, x := range list {
		if x.Name = x.secrets(s).Label(x.cell.name); x.Name == "" {
			continue
		}
		if other := taken[x.Name]; other != nil {
			return fmt.Errorf("two experiments have the name %s: %s", x.Name,
				strings.Join(slices.Compact([]string{other.cell.where, x.cell.where}), " and "))
		}
		taken[x.Name] = x
	}
	for _, x := range list {
		if x.Name != "" {
			continue
		}
		shown := x.secrets(s).Params(x.Params)
		short := e.nameOf(x, shown, varies, false)
		for _, try := range []string{short, e.nameOf(x, shown, varies, true), short + "-" + x.Key[:6]} {
			if x.Name = try; taken[try] == nil {
				break
			}
		}
		taken[x.Name] = x
	}
	return nil
}

// varies reports whether a parameter has different values in the suite.
func (e *expansion) varies(list []*Experiment, name string) bool {
	var first any
	for _, x := range list {
		switch v, ok := x.Params[name]; {
		case !ok:
			if !e.scope.builtin { // a built-in experiment may lack a parameter because another one varies
				return true
			}
		case first == nil:
			first = v
		case !e.scope.same(name, first, v):
			return true
		}
	}
	return false
}

// nameOf joins the values that a name shows. nameOf leaves out values that are completely masked. Values that are words
// appear without their parameter's name, unless full is true.
func (e *expansion) nameOf(x *Experiment, shown map[string]any, varies map[string]bool, full bool) string {
	var parts []string
	if e.scope.builtin {
		parts = append(parts, methodWord(x.cell.given[methodName].text))
	}
	names := x.cell.own
	if full {
		names = slices.Concat(names, slices.DeleteFunc(slices.Clone(e.scope.names), func(n string) bool {
			return slices.Contains(names, n)
		}))
	}
	for _, name := range names {
		v, ok := shown[name]
		if !ok || v == mask.Mask || !varies[name] || e.scope.builtin && name == methodName {
			continue
		}
		part := name + fmt.Sprint(v)
		switch v := v.(type) {
		case string:
			if !full {
				part = v
			}
		case bool:
			if part = name; !v {
				part = "no-" + name
			}
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		parts = []string{e.doc.Name}
	}
	if x.Bare {
		parts = append(parts, bareName)
	}
	return collect.SafeName(strings.Join(parts, "-"))
}

// methodWord returns the method's id, or the given name if that is more precise: functorch means dpsgd with a mode.
func methodWord(word string) string {
	id := method(word)
	said, err1 := experiments.Resolve(map[string]string{methodName: word})
	plain, err2 := experiments.Resolve(map[string]string{methodName: id})
	if err1 == nil && err2 == nil && !maps.Equal(said, plain) {
		return word
	}
	return id
}

// key returns a hash of an experiment's content. The same experiment has the same key in every suite. The key contains
// neither repeats and time limits nor secrets: a new token does not make a new experiment.
func (e *expansion) key(x *Experiment, environment map[string]string) (string, error) {
	command, params := x.Command, x.Params
	if len(command) > 0 || len(environment) > 0 {
		secrets := mask.Gather(command, entries(environment), params)
		command, params = secrets.Command(command), secrets.Params(params)
		environment = secrets.Environment(environment)
	}
	b, err := json.Marshal(struct { // JSON sorts the keys of maps
		Params      map[string]any    `json:"params"`
		Bare        bool              `json:"bare"`
		Command     []string          `json:"command,omitempty"`
		Environment map[string]string `json:"environment,omitempty"`
	}{params, x.Bare, command, environment})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// entries returns an environment as sorted entries NAME=value, as os.Environ does.
func entries(environment map[string]string) []string {
	var out []string
	for name, value := range environment {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}
