package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas/launch"
)

// Limits of a simulated world.
const (
	maxWorld   = 1024
	maxPerNode = 8 // the most devices that a phantom machine can have
)

// A World is a script that torchrun would start once for each GPU. Some of its ranks run on the phantom GPU. The others
// are simulated, as copies of the rank that communicates with them.
type World struct {
	Size    int
	Ranks   []int // ranks that run
	PerNode int   // GPUs on each machine
}

// The defaults of --ranks and --gpus-per-node.
const (
	defaultRanks   = "0"
	defaultPerNode = 8
)

// WorldOf returns the World that the options describe, or nil without --world-size, without which the other options
// have no effect.
func WorldOf(size *int, ranks string, perNode int) (*World, error) {
	switch {
	case size != nil:
		return newWorld(*size, ranks, perNode)
	case ranks != defaultRanks:
		return nil, &UsageError{"--ranks has no effect without --world-size", "as in --world-size 8 --ranks 0,7"}
	case perNode != defaultPerNode:
		return nil, &UsageError{"--gpus-per-node has no effect without --world-size",
			"as in --world-size 8 --gpus-per-node 4"}
	}
	return nil, nil
}

// newWorld checks --world-size, --ranks and --gpus-per-node, and returns the World.
func newWorld(size int, ranks string, perNode int) (*World, error) {
	if size < 1 || size > maxWorld {
		return nil, &UsageError{fmt.Sprintf("--world-size must be 1 to %d, not %d", maxWorld, size),
			"give the number of processes that torchrun would start on all machines together"}
	}
	if perNode < 1 || perNode > maxPerNode {
		return nil, &UsageError{fmt.Sprintf("--gpus-per-node must be 1 to %d, not %d", maxPerNode, perNode), ""}
	}
	w := &World{Size: size, PerNode: perNode}
	for word := range strings.SplitSeq(ranks, ",") {
		rank, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil:
			return nil, &UsageError{fmt.Sprintf("--ranks %s: %q is not a rank", ranks, word), "as in --ranks 0,7"}
		case rank < 0 || rank >= size:
			return nil, &UsageError{fmt.Sprintf("--ranks %s: there is no rank %d in a world of %d", ranks, rank, size),
				fmt.Sprintf("ranks are 0 to %d", size-1)}
		case slices.Contains(w.Ranks, rank):
			return nil, &UsageError{fmt.Sprintf("--ranks %s names rank %d twice", ranks, rank), ""}
		}
		w.Ranks = append(w.Ranks, rank)
	}
	return w, nil
}

// check refuses a World that cannot be simulated.
func (w *World) check(m *Machine, e *Experiment, python string) error {
	switch {
	case !m.Predicted:
		return &UsageError{"--world-size simulates ranks on phantom GPUs, and this is a real one (" + m.Note + ")",
			"add --device phantom; on real GPUs, use torchrun"}
	case len(e.Command) == 0:
		return &UsageError{"--world-size needs a script that joins a process group; built-in experiments do not",
			"give a command"}
	case launch.Behind(e.Command) != nil:
		return &UsageError{fmt.Sprintf("--world-size replaces %s", filepath.Base(e.Command[0])),
			"give the script itself, as in: dpsight collect --device phantom --world-size 8 -- python train.py"}
	case python == "":
		return &UsageError{fmt.Sprintf("--world-size needs the script's Python, and the command does not name it: %s",
			e.Command[0]), "as in: dpsight collect --device phantom --world-size 8 -- python train.py"}
	}
	return nil
}

// devices returns the number of GPUs that a process sees.
func (w *World) devices() int { return min(w.PerNode, w.Size) }

// vars returns the variables that torchrun would set for a rank.
func (w *World) vars(rank int) map[string]string {
	node := rank / w.PerNode
	nodes := (w.Size + w.PerNode - 1) / w.PerNode
	vars := map[string]string{"MASTER_ADDR": "127.0.0.1", "ROLE_NAME": "default", "TORCHELASTIC_RUN_ID": "dpsight"}
	for name, value := range map[string]int{
		"RANK": rank, "LOCAL_RANK": rank % w.PerNode, "WORLD_SIZE": w.Size, "LOCAL_WORLD_SIZE": min(w.PerNode,
			w.Size-node*w.PerNode),
		"GROUP_RANK": node, "GROUP_WORLD_SIZE": nodes, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": w.Size,
		"MASTER_PORT": 29500, "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0,
	} {
		vars[name] = strconv.Itoa(value)
	}
	vars[phantom.SharedPage] = strconv.Itoa(max(0, slices.Index(w.Ranks, rank)))
	return vars
}

// pages returns the number of sets of devices in a run: one, or one for each rank if each has its own devices.
func (w *World) pages() int {
	if w == nil {
		return 1
	}
	return len(w.Ranks)
}

func (*World) launcher(dir string) string { return filepath.Join(dir, phantom.RanksLauncher) }

// command returns the command and the environment with which the ranks run. For a single rank this is the script
// itself. For several ranks, a launcher replaces torchrun, under the script's Python.
func (w *World) command(dir, python, path string, argv, env []string) (newPath string, newArgv, newEnv []string) {
	set := w.vars(w.Ranks[0])
	if len(w.Ranks) > 1 {
		var each []string
		for _, rank := range w.Ranks {
			var words []string
			for name, value := range w.vars(rank) {
				words = append(words, name+"="+value)
			}
			slices.Sort(words)
			each = append(each, strings.Join(words, ","))
		}
		argv = append([]string{python, w.launcher(dir), strings.Join(each, ";"), path}, argv[1:]...)
		path, set = python, nil
	}
	out := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, ours := w.vars(0)[name]
		return ours
	})
	for name, value := range set {
		out = append(out, name+"="+value)
	}
	if !slices.ContainsFunc(out, func(entry string) bool { return strings.HasPrefix(entry, "OMP_NUM_THREADS=") }) {
		out = append(out, "OMP_NUM_THREADS=1") // as torchrun does
	}
	return path, argv, out
}

// joinedVariable is the variable that names a folder. A rank that joins a process group writes a file there, named by
// its number.
const joinedVariable = "PHANTOM_JOINED"

// ranksWords name ranks: "rank 1", "ranks 0 and 63" or "ranks 0, 1 and 63".
func ranksWords(ranks []string) string {
	last := len(ranks) - 1
	if last == 0 {
		return "rank " + ranks[0]
	}
	return "ranks " + strings.Join(ranks[:last], ", ") + " and " + ranks[last]
}

// strangers returns the ranks that joined no process group.
func (w *World) strangers(folder string) (ranks []string) {
	for _, rank := range w.Ranks {
		if _, err := os.Stat(filepath.Join(folder, strconv.Itoa(rank))); err != nil {
			ranks = append(ranks, strconv.Itoa(rank))
		}
	}
	return ranks
}

// astray returns a text that names the ranks which took memory on another rank's device, or "". astray leaves out
// strangers, the ranks that joined no process group. A prediction of single ranks does not show what several ranks hold
// together on one device, so only this text reveals the problem.
func (w *World) astray(uses []phantom.Use, strangers []string) string {
	var ranks, devices []string
	for _, u := range uses {
		rank := w.Ranks[u.Page]
		if name := strconv.Itoa(rank); u.Device != rank%w.PerNode && !slices.Contains(strangers, name) {
			ranks, devices = append(ranks, name), append(devices, fmt.Sprintf("cuda:%d", u.Device))
		}
	}
	if len(ranks) == 0 {
		return ""
	}
	slices.Sort(devices)
	return fmt.Sprintf("%s used memory of %s, but each rank should have a device of its own: sharing leaves less "+
		"memory, and NCCL refuses two ranks on one device. Did the script forget "+
		`torch.cuda.set_device(int(os.environ["LOCAL_RANK"])), or map_location in torch.load?`,
		ranksWords(slices.Compact(ranks)), strings.Join(slices.Compact(devices), ", "))
}
