package suite

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas/near"
)

// placeholder matches {name} in a command. {{ and }} mean braces.
var placeholder = regexp.MustCompile(`\{\{|\}\}|\{([^{}]*)\}`)

// variable matches the form of a parameter's name.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// command returns the suite's command with its placeholders filled. Without a template it returns nil, which means a
// built-in experiment.
func (e *expansion) command(given map[string]scalar, bare bool) ([]string, error) {
	var argv []string
	for _, arg := range e.doc.Command {
		word, err := e.fill("the command", arg, given, bare)
		if err != nil {
			return nil, err
		}
		argv = append(argv, word)
	}
	if len(argv) > 0 && argv[0] == "" {
		return nil, errors.New("the command's first word is empty")
	}
	return argv, nil
}

// Fill fills one placeholder of a command's template. Fill returns an error if no word contains {name}, since the value
// would then have no effect.
func Fill(template []string, name, value string) ([]string, error) {
	found := false
	argv := make([]string, len(template))
	for i, word := range template {
		argv[i] = placeholder.ReplaceAllStringFunc(word, func(m string) string {
			switch m {
			case "{{", "}}":
				return m[:1]
			case "{" + name + "}":
				found = true
				return value
			}
			return m
		})
	}
	if !found {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("the command has no {%s} for --vary to fill", name),
			Advice: unfilledHint(template, name)}
	}
	return argv, nil
}

// unfilledHint says what a command without {name} lacks: the placeholder itself, or one of its options.
func unfilledHint(template []string, name string) string {
	var names []string
	for _, word := range template {
		for _, m := range placeholder.FindAllStringSubmatch(word, -1) {
			// Braces of JSON, or of a script after -c, are not placeholders.
			if variable.MatchString(m[1]) && !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	meant := near.Word(name, names)
	if len(names) == 1 {
		meant = names[0]
	}
	if meant != "" {
		return fmt.Sprintf("the command has {%s}: did you mean --vary %s=…?", meant, meant)
	}
	return fmt.Sprintf("as in: dpsight predict --vary %s=1..64 -- python train.py --%s {%s}", name,
		strings.ReplaceAll(name, "_", "-"), name)
}

// fill replaces the placeholders of a template by an experiment's values from the file.
func (e *expansion) fill(what, template string, given map[string]scalar, bare bool) (string, error) {
	missing := ""
	text := placeholder.ReplaceAllStringFunc(template, func(m string) string {
		if m == "{{" || m == "}}" {
			return m[:1]
		}
		name := m[1 : len(m)-1]
		if name == bareName {
			return fmt.Sprint(bare)
		}
		v, ok := given[name]
		if !ok && missing == "" {
			missing = m
		}
		return v.text
	})
	if missing == "" {
		return text, nil
	}
	known := slices.Sorted(maps.Keys(given))
	if len(known) == 0 {
		known = []string{"none"}
	}
	return "", fmt.Errorf("%s has %s, but neither the experiment nor the defaults have such a parameter; known: %s",
		what, missing, strings.Join(known, ", "))
}
