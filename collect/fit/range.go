// Package fit finds the largest value of a parameter with which an experiment still fits on a device.
package fit

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/collect"
)

// A Range is the argument of --vary: the values Low, Low+Step, … up to High of a parameter.
type Range struct {
	Name            string
	Low, High, Step int64
}

// Folder returns the default folder for a search's tables in a store.
func (r *Range) Folder(store string) string {
	return filepath.Join(store, "fit-"+collect.SafeName(r.Name))
}

const varyHint = "as in --vary batch_size=1..512, or --vary seq_len=512..16384:512 in steps of 512"

// ParseRange reads NAME=LOW..HIGH or NAME=LOW..HIGH:STEP. Errors are [collect.UsageError].
func ParseRange(text string) (Range, error) {
	fail := func(format string, args ...any) (Range, error) {
		return Range{}, &collect.UsageError{Problem: "--vary " + text + ": " + fmt.Sprintf(format, args...),
			Advice: varyHint}
	}
	name, values, ok := strings.Cut(text, "=")
	name = strings.ReplaceAll(strings.TrimLeft(strings.TrimSpace(name), "-"), "-", "_")
	if !ok || name == "" {
		return fail("the value must look like NAME=LOW..HIGH")
	}
	values, step, stepped := strings.Cut(values, ":")
	low, high, ok := strings.Cut(values, "..")
	if !ok {
		return fail("the value has no range LOW..HIGH")
	}
	r := Range{Name: name, Step: 1}
	for _, part := range []struct {
		to   *int64
		text string
		read bool
	}{{&r.Low, low, true}, {&r.High, high, true}, {&r.Step, step, stepped}} {
		if !part.read {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(part.text), 10, 64)
		if err != nil || n < 1 || n > 1<<40 {
			return fail("%q is not a whole number from 1", part.text)
		}
		*part.to = n
	}
	if r.High < r.Low {
		return fail("the range ends below its start: %d is less than %d", r.High, r.Low)
	}
	r.High -= (r.High - r.Low) % r.Step
	return r, nil
}

// Values are the values that a search may try: every integer of a range, or only those that the experiment's options
// allow, such as the divisors of a batch.
type Values struct {
	Range
	Only   []int64 // in ascending order; nil means all
	Barred string  // why the first forbidden value is forbidden; empty if none is
	Top    bool    // whether the options allow no higher value, as no physical batch is larger than its batch
}

func (v *Values) last() int64 {
	if v.Only != nil {
		return int64(len(v.Only)) - 1
	}
	return (v.High - v.Low) / v.Step
}

func (v *Values) at(i int64) int64 {
	if v.Only != nil {
		return v.Only[i]
	}
	return v.Low + i*v.Step
}

// Probes returns the most runs that a search needs if memory grows with the value. The search may need more runs if
// values beyond the answer fit.
func (v *Values) Probes() int {
	last := v.last()
	if last == 0 {
		return 1
	}
	probes := int64(2)
	for n := last; n > 1; n = (n + 1) / 2 {
		probes++
	}
	return int(min(probes+3, last+1)) // two values above the answer and one below
}
