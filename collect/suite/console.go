package suite

import (
	"fmt"
	"io"

	"github.com/dpsight/dpsight/collect"
)

// Show reports each run on a console. Concurrent experiments write to stderr, each line after the experiment's name. If
// stderr is nil, their output is not changed.
func (o *Options) Show(console *collect.Console, stderr io.Writer) {
	o.Begin = func(i, of int, t Task) {
		console.Plan(i, of)
		console.Println(fmt.Sprintf("dpsight: experiment %d of %d: %s", i+1, of, t.Title()))
	}
	if o.Jobs <= 1 {
		return
	}
	console.Together()
	if stderr != nil {
		o.Output = func(t Task, e *collect.Experiment) {
			e.Stdout, e.Stderr = console.Prefixed(stderr, t.Name), console.Prefixed(stderr, t.Name)
		}
	}
}
