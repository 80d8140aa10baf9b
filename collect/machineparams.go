package collect

import (
	"maps"
	"strconv"
	"strings"
)

// ParamsWithMachine returns an experiment's parameters together with the user's settings for the machine and the
// prediction: the world that a script is a rank of, the GPU's memory, and the number of steps. Settings for the machine
// and the prediction decide what fits as much as the batch size does, so runs that differ in them are not repeats of
// each other. ParamsWithMachine leaves out settings that the user did not give.
func (m *Machine) ParamsWithMachine(e *Experiment) map[string]any {
	params := maps.Clone(e.Params)
	if params == nil {
		params = map[string]any{}
	}
	if w := e.World; w != nil {
		var ranks []string
		for _, rank := range w.Ranks {
			ranks = append(ranks, strconv.Itoa(rank))
		}
		params["world_size"], params["ranks"], params["gpus_per_node"] = int64(w.Size), strings.Join(ranks, ","),
			int64(w.PerNode)
	}
	if m.Predicted && e.Steps != "" && e.Steps != StepsAuto {
		params["predicted_steps"] = e.Steps
	}
	if m.Predicted && e.GPUs > 0 {
		params["gpus"] = int64(e.GPUs)
	}
	if m.memory > 0 {
		params["gpu_memory"] = m.memory
	}
	return params
}
