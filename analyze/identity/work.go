package identity

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/schemas/launch"
)

// ScriptOf names what a command runs: the base name of its script, or -m and the name of its module; "" if the command
// shows neither.
func ScriptOf(command []string) string {
	script, module := launch.Work(command)
	switch {
	case script != "":
		return launch.Base(script)
	case module != "":
		return "-m " + module
	}
	return ""
}

// TwinKey returns a key that is equal for a bare run and its fully recorded twin. The key covers their parameters and
// facts except the number of steps.
func TwinKey(id *Identity, key, script string, facts []Fact) string {
	if id.Method() == "" && key == "" {
		return id.RunID
	}
	var b strings.Builder
	b.WriteString(id.Source)
	if id.Method() == "" {
		b.WriteString("\x00" + script + "\x00" + CommandText(id.Command))
	}
	for _, f := range facts {
		if f.What != "num_iter" && f.What != "warmup_iter" {
			fmt.Fprintf(&b, "\x00%s=%s%s", f.What, f.Value, f.Whole)
		}
	}
	return b.String()
}
