package suite

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A constraint is a parsed "where": comparisons of parameters, numbers and words, joined by and, or, not, parentheses
// and commas (ands that bind last). The parser is written by hand: a library for expressions brings a language with
// calls and indexing along, and its errors would not be in a suite's words.
//
// As in SQL's CHECK, a comparison with a parameter that an experiment does not have is unknown, and only an experiment
// of which the constraint is false is left out: physical_batch_size <= batch_size says nothing of one without either.
type constraint func(params map[string]any) verdict

// verdict is a truth value of Kleene's logic: and is the least, or the greatest, not the negative.
type verdict int

const (
	fails   verdict = -1
	unknown verdict = 0
	holds   verdict = 1
)

// deepest bounds the nesting, and with it the parser's stack.
const deepest = 100

var (
	whereToken  = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|[<>=!]=|[<>(),]|[\p{L}\p{N}_.+/-]+)\s*`)
	comparisons = map[string]func(order int) bool{
		"==": func(o int) bool { return o == 0 }, "!=": func(o int) bool { return o != 0 },
		"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 },
		">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
	}
	notOperands = []string{"", "and", "or", "not", "(", ")", ","}
)

type whereParser struct {
	tokens []string
	scope  *scope
	depth  int
}

// parseWhere parses a constraint on the parameters of a scope.
func parseWhere(text string, s *scope) (constraint, error) {
	p := &whereParser{scope: s}
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := whereToken.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("%q cannot be read; it has comparisons (==, !=, <, <=, >, >=), and, or, not, "+
				"parentheses and commas", strings.TrimSpace(rest))
		}
		p.tokens = append(p.tokens, m[1])
		rest = rest[len(m[0]):]
	}
	all, err := p.joined(",", func() (constraint, error) { return p.joined("or", p.and) })
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("%s is not expected", p.tokens[0])
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (p *whereParser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *whereParser) accept(token string) bool {
	found := len(p.tokens) > 0 && p.tokens[0] == token
	if found {
		p.tokens = p.tokens[1:]
	}
	return found
}

// joined parses terms between separators. An or takes the greatest verdict of its terms, the others take the least.
func (p *whereParser) joined(separator string, term func() (constraint, error)) (constraint, error) {
	var terms []constraint
	for again := true; again; again = p.accept(separator) {
		t, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return func(params map[string]any) verdict {
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

func (p *whereParser) and() (constraint, error) { return p.joined("and", p.not) }

func (p *whereParser) not() (constraint, error) {
	if p.depth++; p.depth > deepest {
		return nil, errors.New("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept("not"):
		inner, err := p.not()
		return func(params map[string]any) verdict { return -inner(params) }, err
	case p.accept("("):
		inner, err := p.joined("or", p.and)
		if err == nil && !p.accept(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return inner, err
	}
	return p.comparison()
}

func (p *whereParser) comparison() (constraint, error) {
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
		return nil, p.scope.unknown(left.String())
	}
	ordered := operator == "<" || operator == "<=" || operator == ">" || operator == ">="
	for _, o := range []operand{left, right} {
		if _, ok := number(o.value); ordered && o.param == "" && !ok {
			return nil, fmt.Errorf("%s is no number: only == and != compare words", o)
		}
	}
	equal := func(params map[string]any, a, b any) bool {
		switch {
		case right.param == "" && left.param != "":
			return p.scope.is(params, left.param, b)
		case left.param == "" && right.param != "":
			return p.scope.is(params, right.param, a)
		}
		return p.scope.same("", a, b)
	}
	return func(params map[string]any) verdict {
		a, b := left.of(params), right.of(params)
		x, ok1 := number(a)
		y, ok2 := number(b)
		order := 1
		switch {
		case a == nil || b == nil || ordered && !(ok1 && ok2):
			return unknown
		case equal(params, a, b):
			order = 0
		case x < y:
			order = -1
		}
		if decide(order) {
			return holds
		}
		return fails
	}, nil
}

// An operand is a parameter, or a value if param is empty.
type operand struct {
	param string
	value any
}

// of is the operand's value in an experiment, nil if that has none.
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

func (p *whereParser) operand() (operand, error) {
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
	if name := p.scope.canonical(t); p.scope.has(name) {
		return operand{param: name}, nil
	}
	if f, err := strconv.ParseFloat(t, 64); err == nil && strings.ContainsAny(t, "0123456789") {
		return operand{value: f}, nil
	}
	return operand{value: t}, nil
}
