package experiments

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Resolve turns a user's options into the complete parameters of a run. Options are texts, by name (in snake_case, or
// with dashes). Resolve replaces aliases of methods, and takes the preset's sizes for options that are not given. Every
// value gets its type (int64, float64, bool, string) and must be in its range.
//
// An option that does not apply to the chosen model or method (see [Option.Only]) is left out of the result, so that a
// suite's defaults can serve all its experiments. Resolve nevertheless checks the value of such an option. [Ignored]
// lists the options that were left out.
//
// An error is one sentence. For an unknown name, it suggests the most similar known name.
func Resolve(given map[string]string) (map[string]any, error) {
	values, err := resolve(given)
	if err != nil {
		return nil, &OptionError{err}
	}
	return values, nil
}

// An OptionError is a mistake in the options of an experiment.
type OptionError struct{ error }

// Unwrap returns the error with the sentence.
func (e *OptionError) Unwrap() error { return e.error }

// Hint says where all options are listed.
func (e *OptionError) Hint() string {
	return "dpsight collect --help and dpsight predict --help list all methods, presets and options"
}

func resolve(given map[string]string) (map[string]any, error) {
	values, err := parseGiven(given)
	if err != nil {
		return nil, err
	}
	// resolveMethod comes before the defaults: an option that a method fixes may conflict with a given option, but
	// never with a default.
	if err := resolveMethod(values); err != nil {
		return nil, err
	}
	for _, o := range table.Options {
		if _, ok := values[o.Name]; !ok && o.Default != nil {
			values[o.Name] = typed(o, o.Default)
		}
	}
	if err := applyPreset(values); err != nil {
		return nil, err
	}
	for _, o := range table.Options {
		if !applies(o, values) {
			delete(values, o.Name)
			continue
		}
		if _, ok := values[o.Name]; ok {
			continue
		}
		if o.DefaultOf == "" {
			return nil, fmt.Errorf("no %s: give %s", o.Name, o.Flag)
		}
		values[o.Name] = values[o.DefaultOf]
	}
	if err := checkRules(values); err != nil {
		return nil, &ConflictError{err}
	}
	return values, nil
}

// A ConflictError reports options that are valid alone but not together.
type ConflictError struct{ error }

// Unwrap returns the error with the sentence.
func (e *ConflictError) Unwrap() error { return e.error }

// Ignored returns the names, sorted, of the options in given that have no
// effect on the experiment that params (from [Resolve]) describes.
func Ignored(given map[string]string, params map[string]any) []string {
	var names []string
	for name := range given {
		name = canonical(name)
		if _, ok := params[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func canonical(name string) string {
	return strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
}

func parseGiven(given map[string]string) (map[string]any, error) {
	values := map[string]any{}
	// The names are sorted so that the same mistake is reported each time.
	for _, name := range slices.Sorted(maps.Keys(given)) {
		o := table.byName[canonical(name)]
		if o == nil {
			return nil, errors.New(unknown("option", name, optionNames(), optionNames()))
		}
		if _, ok := values[o.Name]; ok {
			return nil, fmt.Errorf("option %s is given twice", o.Name)
		}
		value, err := parseValue(*o, given[name])
		if err != nil {
			return nil, err
		}
		values[o.Name] = value
	}
	return values, nil
}

func parseValue(o Option, text string) (any, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, fmt.Errorf("%s is empty", o.Name)
	}
	switch o.Type {
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a whole number, not %s", o.Name, quote(text))
		}
		return n, checkRange(o, float64(n), text)
	case Float:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("%s must be a number, not %s", o.Name, quote(text))
		}
		return f, checkRange(o, f, text)
	case Bool:
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%s must be true or false, not %s", o.Name, quote(text))
	case Enum:
		if !slices.Contains(o.Choices, text) {
			return nil, errors.New(unknown(o.Name, text, o.Choices, o.Choices))
		}
	}
	if re := table.patterns[o.Name]; re != nil && !re.MatchString(text) {
		return nil, fmt.Errorf("%s must look like %s, not %s", o.Name, o.Example, quote(text))
	}
	return text, nil
}

func checkRange(o Option, n float64, text string) error {
	switch {
	case o.Min != nil && o.ExclusiveMin && n <= *o.Min:
		return fmt.Errorf("%s must be more than %v, not %s", o.Name, *o.Min, text)
	case o.Min != nil && n < *o.Min:
		return fmt.Errorf("%s must be at least %v, not %s", o.Name, *o.Min, text)
	case o.Max != nil && n > *o.Max:
		return fmt.Errorf("%s must be at most %v, not %s", o.Name, *o.Max, text)
	}
	return nil
}

// typed converts a JSON value from the table to the option's type.
func typed(o Option, value any) any {
	if f, ok := value.(float64); ok && o.Type == Int {
		return int64(f)
	}
	return value
}

func resolveMethod(values map[string]any) error {
	called, _ := values["method"].(string)
	if called == "" {
		return fmt.Errorf("no method: give --method %s", strings.Join(methodIDs(), ", "))
	}
	var names []string
	for _, m := range table.Methods {
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			if strings.EqualFold(canonical(called), name) {
				return applyMethod(m, name, values)
			}
			names = append(names, name)
		}
	}
	return errors.New(unknown("method", called, methodIDs(), names))
}

// applyMethod sets the method and the options that it fixes. name is the user's name for the method.
func applyMethod(m Method, name string, values map[string]any) error {
	values["method"] = m.ID
	if m.Of != "" {
		values["method"] = m.Of
	}
	for option, value := range m.Fixes {
		value = typed(*table.byName[option], value)
		if given, ok := values[option]; ok && given != value {
			return &ConflictError{fmt.Errorf("method %s goes with %s %s, not %s", name, option, text(value),
				text(given))}
		}
		values[option] = value
	}
	return nil
}

func applyPreset(values map[string]any) error {
	name, model := values["preset"].(string), values["model"].(string)
	var all, ofModel []string
	for _, p := range table.Presets {
		all = append(all, p.Name)
		if p.For(model) != nil {
			ofModel = append(ofModel, p.Name)
		}
	}
	i := slices.Index(all, name)
	if i < 0 {
		return errors.New(unknown("preset", name, all, all))
	}
	sizes := table.Presets[i].For(model)
	if sizes == nil {
		return fmt.Errorf("preset %s has no sizes for model %s; known: %s", name, model, strings.Join(ofModel, ", "))
	}
	for option, value := range sizes {
		if _, ok := values[option]; !ok {
			values[option] = typed(*table.byName[option], value)
		}
	}
	return nil
}

func applies(o Option, values map[string]any) bool {
	for other, choices := range o.Only {
		if !slices.Contains(choices, fmt.Sprint(values[other])) {
			return false
		}
	}
	return true
}

func checkRules(values map[string]any) error {
	for _, r := range table.Rules {
		if d := r.Divides; d != nil {
			divisor, ok1 := values[d.Divisor].(int64)
			number, ok2 := values[d.Number].(int64)
			if ok1 && ok2 && number%divisor != 0 {
				return fmt.Errorf("%s must be a divisor of %s %d, not %d", d.Divisor, d.Number, number, divisor)
			}
		}
		if l := r.Less; l != nil {
			number, ok1 := values[l.Number].(float64)
			bound, ok2 := values[l.Bound].(float64)
			if ok1 && ok2 && number >= l.Times*bound {
				return fmt.Errorf("%s %s must be less than %s%s %s", l.Number, text(number), times(l.Times), l.Bound,
					text(bound))
			}
		}
		if f := r.Refuse; f != nil {
			holds := true
			for option, refused := range f.When {
				value, ok := values[option]
				holds = holds && ok && slices.Contains(refused, fmt.Sprint(value))
			}
			if holds {
				return errors.New(fill(f.Why, values))
			}
		}
	}
	return nil
}

// times formats a factor before a name.
func times(factor float64) string {
	if factor == 1 {
		return ""
	}
	return text(factor) + " times "
}

// fill replaces each {name} in a rule's sentence by the value of the option with that name.
func fill(sentence string, values map[string]any) string {
	for name, value := range values {
		sentence = strings.ReplaceAll(sentence, "{"+name+"}", fmt.Sprint(value))
	}
	return sentence
}

func optionNames() []string {
	names := make([]string, len(table.Options))
	for i, o := range table.Options {
		names[i] = o.Name
	}
	return names
}

// methodIDs returns the methods that params may name.
func methodIDs() []string {
	var ids []string
	for _, m := range table.Methods {
		if m.Of == "" {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func quote(text string) string { return strconv.Quote(text) }
