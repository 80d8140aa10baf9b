package collect

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/phantom"
)

func TestNewWorld(t *testing.T) {
	for _, test := range []struct {
		size    int
		ranks   string
		perNode int
		says    string
	}{
		{0, "0", 8, "--world-size must be 1 to 1024, not 0"},
		{1025, "0", 8, "--world-size must be 1 to 1024, not 1025"},
		{2, "0", 0, "--gpus-per-node must be 1 to 8, not 0"},
		{2, "0", 9, "--gpus-per-node must be 1 to 8, not 9"},
		{2, "", 8, `--ranks : "" is not a rank`},
		{2, "0,x", 8, `--ranks 0,x: "x" is not a rank`},
		{2, "2", 8, "--ranks 2: there is no rank 2 in a world of 2"},
		{2, "-1", 8, "--ranks -1: there is no rank -1 in a world of 2"},
		{4, "1,1", 8, "--ranks 1,1 names rank 1 twice"},
	} {
		var usage *UsageError
		if _, err := newWorld(test.size, test.ranks, test.perNode); !errors.As(err, &usage) ||
			usage.Error() != test.says {
			t.Errorf("%d %s %d: %v", test.size, test.ranks, test.perNode, err)
		}
	}
}

func TestWorldOfARank(t *testing.T) {
	w, err := newWorld(10, "9, 2", 4)
	if err != nil {
		t.Fatal(err)
	}
	vars := w.vars(9)
	for name, want := range map[string]string{
		"RANK": "9", "LOCAL_RANK": "1", "WORLD_SIZE": "10", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "2",
		"GROUP_WORLD_SIZE": "3", "MASTER_PORT": "29500",
	} {
		if vars[name] != want {
			t.Errorf("%s=%s, want %s", name, vars[name], want)
		}
	}
	if w.devices() != 4 {
		t.Errorf("%d devices", w.devices())
	}
	// The variables RANK and WORLD_SIZE that are already set come from a launcher of the dpsight process. The ranks
	// must not get them.
	env := []string{"RANK=0", "HOME=/h", "WORLD_SIZE=1"}
	path, argv, got := w.command("/s", "/py", "/bin/x", []string{"x", "-a", "b"}, env)
	if path != "/py" || len(argv) != 6 || argv[1] != "/s/phantom_launch.py" || strings.Count(argv[2], ";") != 1 ||
		!slices.Equal(argv[3:], []string{"/bin/x", "-a", "b"}) {
		t.Errorf("%s %q", path, argv)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"HOME=/h", "OMP_NUM_THREADS=1"}) {
		t.Errorf("environment %q", got)
	}
	w.Ranks = w.Ranks[:1]
	path, argv, got = w.command("/s", "/py", "/bin/x", []string{"x", "-a", "b"}, env)
	if path != "/bin/x" || len(argv) != 3 || !slices.Contains(got, "RANK=9") || slices.Contains(got, "RANK=0") {
		t.Errorf("%s %q %q", path, argv, got)
	}
}

// dpsight warns about each simulated rank that used memory of another rank's device, for example since its script did
// not choose a device. A rank that used only its own device gets no warning.
func TestWorldSaysWhoIsAstray(t *testing.T) {
	w, err := newWorld(16, "0,3,8,12", 8)
	if err != nil {
		t.Fatal(err)
	}
	if said := w.astray([]phantom.Use{{Page: 0}, {Page: 1, Device: 3}, {Page: 2}, {Page: 3, Device: 4}},
		nil); said != "" {
		t.Errorf("each on its own: %q", said)
	}
	const want = "ranks 3 and 12 used memory of cuda:0, cuda:1, but each rank should have a device of its own: "
	if said := w.astray([]phantom.Use{{Page: 0}, {Page: 1}, {Page: 1, Device: 1}, {Page: 2}, {Page: 3},
		{Page: 3, Device: 4}}, nil); !strings.HasPrefix(said, want) {
		t.Errorf("%q", said)
	}
	if said := w.astray([]phantom.Use{{Page: 1}}, []string{"3"}); said != "" {
		t.Errorf("of a stranger: %q", said)
	}
}

func TestWorldRefusals(t *testing.T) {
	w, err := newWorld(2, "0", 8)
	if err != nil {
		t.Fatal(err)
	}
	phantom, gpu := &Machine{Predicted: true}, &Machine{Note: "device: CUDA"}
	for _, test := range []struct {
		machine *Machine
		command []string
		python  string
		says    string
	}{
		{gpu, []string{"python", "t.py"}, "/py", "--world-size simulates ranks on phantom GPUs, and this is a " +
			"real one (device: CUDA)"},
		{phantom, nil, "/py", "--world-size needs a script that joins a process group; built-in " +
			"experiments do not"},
		{phantom, []string{"/x/torchrun", "t.py"}, "/py", "--world-size replaces torchrun"},
		{phantom, []string{"./run.sh"}, "", "--world-size needs the script's Python, and the command does not name " +
			"it: ./run.sh"},
		{phantom, []string{"python", "t.py"}, "/py", ""},
	} {
		err := w.check(test.machine, &Experiment{Command: test.command}, test.python)
		if err == nil && test.says != "" || err != nil && err.Error() != test.says {
			t.Errorf("%q: %v", test.command, err)
		}
	}
}
