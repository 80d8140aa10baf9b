package stackrules

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/dpsight/dpsight/schemas"
)

// Read reads a user's rules: a YAML list of mappings with role, category or phase, and file, function or both.
func Read(r io.Reader) ([]schemas.StackRule, error) {
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	rules := []schemas.StackRule{} // an empty file means that the user has no rules
	if err := d.Decode(&rules); err != nil && !errors.Is(err, io.EOF) {
		var types *yaml.TypeError
		if errors.As(err, &types) && strings.Contains(types.Errors[0], "not found in type") {
			return nil, errors.New(strings.ReplaceAll(types.Errors[0], "type schemas.StackRule", "a rule"))
		}
		return nil, errors.New("it is no list of rules, each with role, category or phase, and file, function or both")
	}
	if rules == nil {
		rules = []schemas.StackRule{}
	}
	if _, err := Default.Before(rules); err != nil {
		return nil, err
	}
	return rules, nil
}

// Before returns the rules with a user's rules before them.
func (r Rules) Before(user []schemas.StackRule) (Rules, error) {
	for i, u := range user {
		meaning, err := meaningOfUser(u)
		var m matcher
		if err == nil {
			m, err = compile(meaning, u.File, u.Function)
		}
		if err != nil {
			return r, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if m.phase = u.Phase; m.phase != "" {
			r.phases = append(r.phases, m)
		} else {
			r.user = append(r.user, m)
		}
	}
	return r, nil
}

func meaningOfUser(u schemas.StackRule) (m Meaning, err error) {
	given := 0
	for _, s := range []string{u.Role, u.Category, u.Phase} {
		if s != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return m, errors.New("it has one of a role, a category and a phase")
	case u.File == "" && u.Function == "":
		return m, errors.New("it has neither a file nor a function")
	case u.Category != "" && !slices.Contains(schemas.Categories, u.Category):
		return m, fmt.Errorf("%q is no category", u.Category)
	case strings.Contains(u.Phase, ","):
		return m, fmt.Errorf("%q is no name of a phase: --at separates by commas", u.Phase)
	case u.Phase != "":
		return m, nil
	case u.Category != "":
		return Meaning{Category: u.Category}, nil
	}
	m.Role, err = ParseRole(u.Role)
	return m, err
}
