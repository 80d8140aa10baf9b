package launch

import (
	"strings"
	"testing"
)

// Each case is a command with the script or module that it runs. started is true if the command's own program starts
// the script, and false if the command calls another program that does.
func TestWhatACommandRuns(t *testing.T) {
	for _, c := range []struct {
		command, script, module string
		started                 bool
	}{
		{"", "", "", true},
		{"python", "", "", true},
		{"python train.py -c x", "train.py", "", true},
		{"python train --fast", "train", "", true},
		{"python t.py -m a.py", "t.py", "", true},
		{"python train.py --module a.py", "train.py", "", true},
		{"/x/python3.11 -uB -W ignore -Xdev --check-hash-based-pycs never sub/t.py --a", "sub/t.py", "", true},
		{"python -BW ignore t.py", "t.py", "", true},
		{"python -Wcm t.py", "t.py", "", true},
		{"python -c print(1) a.py", "", "", true},
		{"python - x", "", "", true},
		{"python -m", "", "", true},
		{"python -um http.server", "", "http.server", true},
		{"python -mpkg t.py", "", "pkg", true},
		{"python -u -m dpsight_experiments --method ghost", "", "dpsight_experiments", true},
		{`C:\py\python.exe C:\work\gan.py`, `C:\work\gan.py`, "", true},
		{"torchrun", "", "", true},
		{"torchrun train.py", "train.py", "", true},
		{"/x/torchrun --nproc-per-node 2 sub/t.py --config c.py", "sub/t.py", "", true},
		{"torchrun --log=a.py t.py -m a.py", "t.py", "", true},
		{"torchrun -m pkg configs/a.py", "", "pkg", true},
		{"torchrun --nproc-per-node 2 --module pkg a.py", "", "pkg", true},
		{"python /x/bin/torchrun --nproc-per-node 2 t.py", "t.py", "", true},
		{"python -u -m torch.distributed.run --standalone t.py", "t.py", "", true},
		{"python -W ignore -m torch.distributed.run t.py", "t.py", "", true},
		{"python -m torch.distributed.run --nproc-per-node 2 pkg.mod", "", "", true},
		{"python -m torch.distributed.run -m pkg a.py", "", "pkg", true},
		{"accelerate config", "", "", true},
		{"accelerate config a.py", "", "", true},
		{"accelerate launch --num_processes 2 t.py", "t.py", "", true},
		{"accelerate launch -m pkg.train a.py", "", "pkg.train", true},
		{"deepspeed --module pkg a.py", "", "pkg", true},
		{"numactl -N 0 python -u t.py", "t.py", "", false},
		{"uv run t.py --launcher torchrun", "t.py", "", false},
		{"uv run torchrun -m pkg a.py", "", "pkg", false},
		{"./train.py --config b.py", "./train.py", "", false},
		// The value of an option is no script. -m names a module only if the program is Python or a launcher.
		{"mytrain --config=configs/dp.py", "", "", false},
		{"mytrain -m large", "", "", false},
		{"./train --fast", "", "", false},
		{"sh -c exit", "", "", false},
	} {
		words := strings.Fields(c.command)
		if script, module := Work(words); script != c.script || module != c.module {
			t.Errorf("%q: script %q, module %q", c.command, script, module)
		}
		script, module := Started(words)
		if want := c.started; want && (script != c.script || module != c.module) || !want && script+module != "" {
			t.Errorf("%q starts script %q, module %q", c.command, script, module)
		}
	}
}

func TestRanks(t *testing.T) {
	for command, want := range map[string]int{
		"": 1, "torchrun --nproc-per-node 2 t.py": 2, "torchrun --standalone --nproc_per_node=4 -m pkg": 4,
		"torchrun t.py --nproc-per-node 2": 1, "python t.py --nproc-per-node 2": 1,
		"torchrun --nproc-per-node gpu t.py": 1, "torchrun --nproc-per-node": 1,
		"accelerate launch --num_processes 3 t.py": 3, "deepspeed --num_gpus=2 t.py": 2,
		"python -m torch.distributed.run --nproc-per-node 2 t.py": 2, "torchrun -m pkg --nproc-per-node 2": 1,
		"torchrun t.py": 1, "python /x/torchrun --nproc-per-node 2 t.py": 2,
	} {
		if got := Ranks(strings.Fields(command)); got != want {
			t.Errorf("%s: %d, want %d", command, got, want)
		}
	}
}
