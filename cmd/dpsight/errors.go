package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
)

// A failure is an experiment or a check that failed: dpsight did its work, and exits with exitFailed.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// hinted is an error with advice.
type hinted interface{ Hint() string }

// withHint adds advice to an error.
func withHint(err error, hint string) error { return schemas.WithHint(err, hint) }

// advise adds advice to an error that has none of its own.
func advise(err error, hint string) error {
	if h := hinted(nil); errors.As(err, &h) && h.Hint() != "" {
		return err
	}
	return withHint(err, hint)
}

// A misuse is a use of options that means nothing or has no effect: who gave them would believe that they had one.
type misuse struct {
	is            bool
	problem, hint string
}

// refuse is the error of the first misuse that is one.
func refuse(list ...misuse) error {
	for _, m := range list {
		if m.is {
			return withHint(errors.New(m.problem), m.hint)
		}
	}
	return nil
}

// complain prints an error in one line, and in another the hint that it or the caller has.
func complain(w io.Writer, err error, hint string) {
	fmt.Fprintf(w, "dpsight: error: %s\n", oneLine(err.Error()))
	if h := hinted(nil); errors.As(err, &h) && h.Hint() != "" {
		hint = h.Hint()
	}
	if hint != "" {
		fmt.Fprintf(w, "dpsight: hint: %s\n", hint)
	}
}

// oneLine keeps what a compiler or an interpreter said of itself from looking like several errors.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// source is a store whose runs can be selected.
func (s *streams) source(store string) *selected.Source {
	return &selected.Source{Store: store, Recording: collect.Running, Say: s.say, Note: s.note, Warn: s.warn}
}

// say prints a line about what is done.
func (s *streams) say(text string) { fmt.Fprintln(s.err, "dpsight: "+text) }

// note prints what a result does not show.
func (s *streams) note(text string) { s.say("note: " + text) }

// warn prints what a result may be wrong or incomplete by.
func (s *streams) warn(text string) { s.say("warning: " + oneLine(text)) }
