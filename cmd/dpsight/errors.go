package main

import (
	"cmp"
	"errors"
	"io"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

// A failure is the error for an experiment or a check that failed although dpsight did its work. dpsight then exits
// with exitFailed.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// withHint adds advice to an error.
func withHint(err error, hint string) error { return schemas.WithHint(err, hint) }

// A misuse is a combination of options that means nothing or has no effect. Without an error, the user would believe
// that the options had an effect.
type misuse struct {
	is            bool
	problem, hint string
}

// refuse returns the error of the first misuse in the list that applies.
func refuse(list ...misuse) error {
	for _, m := range list {
		if m.is {
			return withHint(errors.New(m.problem), m.hint)
		}
	}
	return nil
}

// complain prints an error in one line. In a second line it prints the error's hint, or else the caller's.
func complain(w io.Writer, err error, hint string) {
	screen.Println(w, "dpsight: error: "+units.Printable(units.OneLine(err.Error())))
	hint = cmp.Or(schemas.Hint(err), hint)
	if hint != "" {
		screen.Println(w, "dpsight: hint: "+units.Printable(hint))
	}
}

// source is a store whose runs can be selected.
func (s *streams) source(store string) *selected.Source {
	console := newConsole(s.err)
	return &selected.Source{Store: store, Named: s.storeNamed, Recording: collect.Recording,
		Say: s.say, Note: s.note, Warn: s.warn, Doing: console.During}
}

// say prints a line about what dpsight is doing.
func (s *streams) say(text string) { screen.Println(s.err, "dpsight: "+units.Printable(text)) }

// note prints what a result leaves out.
func (s *streams) note(text string) { s.say("note: " + text) }

// warn prints how a result may be wrong or incomplete.
func (s *streams) warn(text string) { s.say("warning: " + units.OneLine(text)) }
