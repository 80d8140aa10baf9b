// Package where is the language of conditions. In a suite, a condition says which experiments to leave out. In --where,
// a condition says which runs a command takes:
//
//	dpsight runs --where 'method=ghost and seq_len>=8192 and date>2026-10-01'
//
// A condition is made of comparisons:
//
//	condition  = either { "," either }
//	either     = all { "or" all }
//	all        = term { "and" term }
//	term       = "not" term | "(" either ")" | comparison
//	comparison = operand ( "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" ) operand
//	operand    = name | number | word | "\"" text "\"" | "'" text "'"
//
// A comma is an "and" that binds less tightly than "or". At least one operand of a comparison is the name of a
// parameter, written with hyphens or underscores. For --where, it may also be the name of a fact of the run. The
// operators < <= > >= compare numbers and dates.
//
// # What is unknown
//
// A comparison with a name that an experiment or a run lacks is neither true nor false, but unknown. A suite leaves out
// an experiment only if the condition is false. A command takes a run only if the condition is true.
package where

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Condition is a parsed condition: comparisons of parameters, numbers and words, joined by and, or, not and
// parentheses. A comma is an and that binds less tightly than or. The parser is written by hand, since a library for
// expressions would add calls and indexing to the language, and its errors would not use dpsight's words.
//
// As in SQL's CHECK, a comparison with a parameter that an experiment does not have is unknown. A suite leaves out an
// experiment only if the condition is false, so physical_batch_size <= batch_size does not exclude an experiment that
// lacks both parameters. A command selects a run only if the condition is true.
type Condition func(params map[string]any) Verdict

// A Scope knows the parameters that a condition may name.
type Scope interface {
	Canonical(name string) string // the spelling of a parameter's name in params
	Has(name string) bool
	Unknown(name string) error // the error for a comparison that names no parameter
	// Unordered returns the error for a comparison by < or > of a value with a parameter that has no order.
	Unordered(value, name string) error
	// Is reports whether a parameter has a certain value. Same reports whether two values count as equal.
	Is(params map[string]any, name string, value any) bool
	Same(a, b any) bool
	Number(value any) (float64, bool) // the number that < and > compare
}

// Verdict is a truth value of Kleene's three-valued logic: "and" takes the least of its verdicts, "or" the greatest,
// and "not" negates.
type Verdict int

const (
	Fails   Verdict = -1
	Unknown Verdict = 0
	Holds   Verdict = 1
)

// deepest is the largest depth of nesting that the parser accepts. deepest limits the parser's stack.
const deepest = 100

var (
	token       = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|[<>=!]=|[<>(),=]|[\p{L}\p{N}_.+/-]+)\s*`)
	comparisons = map[string]func(order int) bool{
		"=": func(o int) bool { return o == 0 }, "==": func(o int) bool { return o == 0 },
		"!=": func(o int) bool { return o != 0 },
		"<":  func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 },
		">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
	}
	notOperands = []string{"", "and", "or", "not", "(", ")", ","}
)

type parser struct {
	tokens []string
	scope  Scope
	depth  int
}

// Parse parses a condition on the parameters of a scope.
func Parse(text string, s Scope) (Condition, error) {
	p := &parser{scope: s}
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := token.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("%q cannot be read; it has comparisons (==, !=, <, <=, >, >=), and, or, not, "+
				"parentheses and commas", strings.TrimSpace(rest))
		}
		p.tokens = append(p.tokens, m[1])
		rest = rest[len(m[0]):]
	}
	all, err := p.joined(",", func() (Condition, error) { return p.joined("or", p.and) })
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("%s is not expected", p.tokens[0])
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) accept(token string) bool {
	found := len(p.tokens) > 0 && p.tokens[0] == token
	if found {
		p.tokens = p.tokens[1:]
	}
	return found
}

// joined parses terms between separators. With the separator or, the result is the greatest verdict of the terms; with
// all other separators, it is the least.
func (p *parser) joined(separator string, term func() (Condition, error)) (Condition, error) {
	var terms []Condition
	for again := true; again; again = p.accept(separator) {
		t, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return func(params map[string]any) Verdict {
		v := terms[0](params)
		for _, t := range terms[1:] {
			if separator == "or" {
				v = max(v, t(params))
			} else {
				v = min(v, t(params))
			}
		}
		return v
	}, nil
}

func (p *parser) and() (Condition, error) { return p.joined("and", p.not) }

func (p *parser) not() (Condition, error) {
	if p.depth++; p.depth > deepest {
		return nil, errors.New("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept("not"):
		inner, err := p.not()
		return func(params map[string]any) Verdict { return -inner(params) }, err
	case p.accept("("):
		inner, err := p.joined("or", p.and)
		if err == nil && !p.accept(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return inner, err
	}
	return p.comparison()
}

func (p *parser) comparison() (Condition, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	operator := p.next()
	decide := comparisons[operator]
	if decide == nil || !p.accept(operator) {
		return nil, fmt.Errorf("%s is followed by no comparison (==, !=, <, <=, >, >=)", left)
	}
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	if left.param == "" && right.param == "" {
		return nil, p.scope.Unknown(left.String())
	}
	ordered := operator == "<" || operator == "<=" || operator == ">" || operator == ">="
	for _, o := range []operand{left, right} {
		if _, ok := p.scope.Number(o.value); ordered && o.param == "" && !ok {
			return nil, p.scope.Unordered(o.String(), left.param+right.param)
		}
	}
	equal := func(params map[string]any, a, b any) bool {
		switch {
		case right.param == "" && left.param != "":
			return p.scope.Is(params, left.param, b)
		case left.param == "" && right.param != "":
			return p.scope.Is(params, right.param, a)
		}
		return p.scope.Same(a, b)
	}
	return func(params map[string]any) Verdict {
		a, b := left.of(params), right.of(params)
		x, ok1 := p.scope.Number(a)
		y, ok2 := p.scope.Number(b)
		order := 1
		switch {
		case a == nil || b == nil || ordered && !(ok1 && ok2):
			return Unknown
		case equal(params, a, b):
			order = 0
		case x < y:
			order = -1
		}
		if decide(order) {
			return Holds
		}
		return Fails
	}, nil
}

// An operand is a parameter, or a value if param is empty.
type operand struct {
	param string
	value any
}

// of returns the operand's value in an experiment or a run, or nil if that lacks the parameter.
func (o operand) of(params map[string]any) any {
	if o.param == "" {
		return o.value
	}
	return params[o.param]
}

func (o operand) String() string {
	if o.param != "" {
		return o.param
	}
	return fmt.Sprint(o.value)
}

func (p *parser) operand() (operand, error) {
	t := p.next()
	if slices.Contains(notOperands, t) || comparisons[t] != nil {
		if t == "" {
			return operand{}, errors.New("it ends where a parameter or a value should be")
		}
		return operand{}, fmt.Errorf("%s stands where a parameter or a value should be", t)
	}
	p.accept(t)
	if t[0] == '"' || t[0] == '\'' {
		return operand{value: t[1 : len(t)-1]}, nil
	}
	if name := p.scope.Canonical(t); p.scope.Has(name) {
		return operand{param: name}, nil
	}
	if f, err := strconv.ParseFloat(t, 64); err == nil && strings.ContainsAny(t, "0123456789") {
		return operand{value: f}, nil
	}
	return operand{value: t}, nil
}
