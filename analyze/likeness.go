package analyze

import (
	"reflect"

	"github.com/dpsight/dpsight/analyze/identity"
)

// Two runs have equal Likenesses if they share their parameters, command and facts in memory, as repeats of an
// experiment do that were read from an index. A value that depends only on parameters, command and facts is the same
// for all runs of one likeness. Runs with different likenesses may still have equal parameters, command and facts.
type Likeness struct {
	name, key, script, source, profile string

	params  uintptr // address of the run's map of parameters
	command *string
	facts   *identity.Fact
}

// Likeness returns the run's likeness.
func (s *Summary) Likeness() Likeness {
	l := Likeness{name: s.Name, key: s.Key, script: s.Script, source: s.Source,
		params: reflect.ValueOf(s.Params).Pointer()}
	if s.Profile != nil {
		l.profile = *s.Profile
	}
	if len(s.Command) > 0 {
		l.command = &s.Command[0]
	}
	if len(s.RunFacts) > 0 {
		l.facts = &s.RunFacts[0]
	}
	return l
}

// Once returns a function that calls of once for each [Likeness]. The result of of must depend on the likeness only.
func Once[T any](of func(*Summary) T) func(*Summary) T {
	known := map[Likeness]T{}
	return func(s *Summary) T {
		l := s.Likeness()
		v, ok := known[l]
		if !ok {
			v = of(s)
			known[l] = v
		}
		return v
	}
}
