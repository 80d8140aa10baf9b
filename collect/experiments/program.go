package experiments

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
)

// Patterns name the Python files: a pattern for the folder would leave out files whose names begin with an underscore.
//
//go:embed options.json dpsight_experiments/*.py dpsight_experiments/clipping/*.py dpsight_experiments/methods/*.py
var program embed.FS

// FS returns the Python program: the package dpsight_experiments and options.json, which the package reads. Unpack
// both into one folder and put that folder on PYTHONPATH.
func FS() fs.FS { return program }

// Args returns the arguments with which a Python interpreter runs the experiment of params, which come from [Resolve]:
// -m dpsight_experiments, then one flag for each parameter in the table's order. Parameters that are no options are
// left out. The caller appends the device: --device cuda or cpu.
func Args(params map[string]any) []string {
	args := []string{"-m", "dpsight_experiments"}
	for _, o := range table.Options {
		if value, ok := params[o.Name]; ok && value != nil {
			args = append(args, o.Flag, text(value))
		}
	}
	return args
}

// text formats a value so that Python's int() and float() read the same value.
func text(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
