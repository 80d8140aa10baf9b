package experiments

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
)

// The Python files are matched by name: a pattern that names the folder would
// leave out those that start with an underscore.
//
//go:embed options.json dpsight_experiments/*.py dpsight_experiments/clipping/*.py dpsight_experiments/methods/*.py
var program embed.FS

// FS returns the Python program: the package dpsight_experiments and options.json, which the package reads. Unpack
// both into one folder and put that folder on PYTHONPATH.
func FS() fs.FS { return program }

// Args returns the arguments for a Python interpreter that run the experiment
// of params, which come from [Resolve]: -m dpsight_experiments, then one flag
// a parameter in the table's order. Parameters that are no options are left
// out. The device is the caller's to append: --device cuda or cpu.
func Args(params map[string]any) []string {
	args := []string{"-m", "dpsight_experiments"}
	for _, o := range table.Options {
		if value, ok := params[o.Name]; ok && value != nil {
			args = append(args, o.Flag, text(value))
		}
	}
	return args
}

// text writes a value so that Python's int() and float() read the same one.
func text(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
