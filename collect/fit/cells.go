package fit

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/schemas/launch"
)

// A Cell is one method on one device.
type Cell struct {
	Method  string // the method, or the command's name
	Machine *collect.Machine
	Margin  int64 // bytes of the device's memory that a value should leave free; 0 if it only has to fit
	Values  Values
	given   map[string]string // options of a built-in experiment; nil for a command
}

// Probes returns the most runs that a search needs if memory grows with the value. The search for the largest value
// that leaves the margin does not repeat the runs at the ends of the range.
func (c *Cell) Probes() int {
	n := c.Values.Probes()
	if c.Margin > 0 {
		n = int(min(int64(2*n-2), c.Values.last()+1))
	}
	return max(n, 1)
}

// mostChecked is the most values that are checked against the options before the search begins.
const mostChecked = 1 << 14

// Cells returns a cell for each combination of a method and a device. Before anything runs, it returns an error for
// everything that can be refused: a [collect.UsageError] or the options' own sentence.
func (s *Search[A]) Cells() ([]Cell, error) {
	methods := []string{""}
	if s.Given != nil {
		if _, ok := s.Given[s.Range.Name]; ok {
			return nil, &collect.UsageError{Problem: fmt.Sprintf("--%s is given, and --vary changes it",
				strings.ReplaceAll(s.Range.Name, "_", "-")), Advice: "leave one out"}
		}
		if s.Given["method"] != "" {
			methods = strings.Split(s.Given["method"], ",")
		}
	}
	var cells []Cell
	names, contents := map[string]bool{}, map[string]bool{}
	for _, method := range methods {
		cell := Cell{}
		if s.Given != nil {
			cell.given = map[string]string{}
			for k, v := range s.Given {
				cell.given[k] = v
			}
			if method = strings.TrimSpace(method); method != "" {
				cell.given["method"] = method
			}
		}
		params, err := s.check(&cell)
		if err != nil {
			return nil, err
		}
		content := fmt.Sprint(params) // Sprint formats a map in the order of its keys
		if contents[content] {
			return nil, &collect.UsageError{Problem: fmt.Sprintf("--method names %s twice", cell.Method),
				Advice: "leave one out"}
		}
		contents[content] = true
		if names[cell.Method] { // another name of a method that has a cell already, as functorch is of dpsgd
			cell.Method = method
		}
		names[cell.Method] = true
		for _, m := range s.Machines {
			cell.Machine = m
			if s.Margin != nil {
				cell.Margin = s.Margin(m)
			}
			cells = append(cells, cell)
		}
	}
	return cells, nil
}

// check refuses a parameter that the cell's experiment does not have. check finds which of the cell's values the
// options allow, since a forbidden value would end the search in the middle, perhaps after an hour. check returns the
// experiment's parameters at the cell's lowest allowed value.
func (s *Search[A]) check(cell *Cell) (lowest map[string]any, err error) {
	r := &s.Range
	for _, value := range []int64{r.Low, r.High} {
		if _, err := s.experiment(cell, value); err != nil && !isConflict(err) {
			return nil, err
		}
	}
	if err := s.allow(cell); err != nil {
		return nil, err
	}
	v := &cell.Values
	if v.Only != nil && len(v.Only) == 0 {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("--vary %s: no value from %d to %d is possible: %s", r.Name,
			r.Low, r.High, v.Barred), Advice: "give a range with possible values"}
	}
	e, err := s.experiment(cell, v.at(0))
	if err != nil {
		return nil, err
	}
	if _, ok := e.Params[r.Name]; !ok {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("--vary %s has no effect on this experiment (%s)",
			r.Name, cell.Method), Advice: "dpsight predict --help says which options go with which model and method"}
	}
	v.Top = s.tops(cell, e.Params)
	return e.Params, nil
}

// tops reports whether the options allow no value above the range: neither any of the next values, nor a value that
// another option limits.
func (s *Search[A]) tops(cell *Cell, params map[string]any) bool {
	r := &s.Range
	if s.Given == nil || (r.High-r.Low)/r.Step >= mostChecked {
		return false
	}
	beyond := []int64{}
	for _, p := range params {
		if value, ok := p.(int64); ok && value > r.High {
			beyond = append(beyond, value)
		}
	}
	for i := range int64(mostChecked) {
		beyond = append(beyond, r.High+(i+1)*r.Step)
	}
	return !slices.ContainsFunc(beyond, func(value int64) bool {
		_, err := s.experiment(cell, value)
		return err == nil
	})
}

// allow determines the cell's values. Only the options of built-in experiments have such rules. Rules of a user's
// command are unknown.
func (s *Search[A]) allow(cell *Cell) error {
	v := Values{Range: s.Range}
	cell.Values = v
	if s.Given == nil {
		return nil
	}
	only, barred := []int64{}, int64(0)
	for i := int64(0); i <= v.last(); i++ {
		if i == mostChecked {
			if v.Barred != "" {
				return &collect.UsageError{Problem: fmt.Sprintf("--vary %s reaches %d, and this value is impossible: %s",
					v.Name, barred, v.Barred),
					Advice: fmt.Sprintf("dpsight skips impossible values in ranges of up to %d values: give a smaller range "+
						"or a step, %s", mostChecked, varyHint)}
			}
			return nil
		}
		value := v.Low + i*v.Step
		_, err := s.experiment(cell, value)
		switch {
		case err == nil:
			only = append(only, value)
		case !isConflict(err):
			return err
		case v.Barred == "":
			barred, v.Barred = value, err.Error()
		}
	}
	if v.Barred != "" {
		v.Only = only
	}
	cell.Values = v
	return nil
}

func isConflict(err error) bool {
	conflict := (*experiments.ConflictError)(nil)
	return errors.As(err, &conflict)
}

// experiment returns the cell's experiment with a value of the parameter.
func (s *Search[A]) experiment(cell *Cell, value int64) (collect.Experiment, error) {
	e, text := s.Template, strconv.FormatInt(value, 10)
	// Secrets are masked before characters of the name are replaced, since they could not be found afterwards.
	name := mask.Gather(e.Command, nil, e.Params).Label(e.Name)
	e.Machine = cell.Machine
	var err error
	if cell.given != nil {
		given := map[string]string{s.Range.Name: text}
		for k, v := range cell.given {
			given[k] = v
		}
		if e.Params, err = experiments.Resolve(given); err != nil {
			return e, err
		}
		if cell.Method == "" {
			cell.Method, _ = e.Params["method"].(string)
		}
	} else {
		if e.Command, err = suite.Fill(s.Template.Command, s.Range.Name, text); err != nil {
			return e, err
		}
		e.Params = map[string]any{}
		for k, v := range s.Template.Params {
			e.Params[k] = v
		}
		e.Params[s.Range.Name] = value
		if cell.Method = name; name == "" {
			cell.Method = calledBy(e.Command)
		}
	}
	if name == "" {
		name = cell.Method
	}
	e.Name = collect.SafeName(name + "-" + s.Range.Name + text)
	return e, nil
}

// calledBy returns a command's name: its script's or, without a script, its program's.
func calledBy(command []string) string {
	if script, _ := launch.Started(command); script != "" {
		return strings.TrimSuffix(filepath.Base(script), ".py")
	}
	return filepath.Base(command[0])
}
