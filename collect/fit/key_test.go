package fit

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
)

// The key of a search's run changes with everything that decides whether the value fits. A secret in the command does
// not change the key.
func TestKey(t *testing.T) {
	base := Probe{Params: map[string]any{"batch_size": int64(4)}, Command: []string{"python", "train.py", "--token",
		"hf_abcdefghijklmnop"}, Profile: "h100", Version: "1",
		Basis: collect.Basis{Interpreter: "/usr/bin/python3", Torch: "2.11.0", Library: "lib-1",
			Variables: []string{"PYTORCH_ALLOC_CONF=max_split_size_mb:64"}}}
	key := func(change func(*Probe)) string {
		p := base
		change(&p)
		k, err := p.Key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	same := key(func(*Probe) {})
	if same != key(func(p *Probe) { p.Command = []string{"python", "train.py", "--token", "hf_qrstuvwxyzabcdef"} }) {
		t.Error("a new token makes another experiment of it")
	}
	for what, change := range map[string]func(*Probe){
		"value": func(p *Probe) {
			p.Params = map[string]any{"batch_size": int64(5)}
		}, "command": func(p *Probe) { p.Command = []string{"python", "other.py"} },
		"profile": func(p *Probe) { p.Profile = "t4" }, "version": func(p *Probe) { p.Version = "2" },
		"folder": func(p *Probe) { p.Folder = "/tmp" },
		"interpreter": func(p *Probe) {
			p.Basis.Interpreter = "/opt/python3"
		}, "python": func(p *Probe) { p.Basis.Python = "3.13" },
		"torch": func(p *Probe) {
			p.Basis.Torch = "2.12.0"
		}, "CUDA": func(p *Probe) { p.Basis.CUDA = "13.0" }, "Opacus": func(p *Probe) { p.Basis.Opacus = "1.6" },
		"phantom GPU": func(p *Probe) {
			p.Basis.Library = "lib-2"
		}, "profile's content": func(p *Probe) { p.Basis.Profile = "x" },
		"module": func(p *Probe) { p.Basis.Modules = "x" }, "experiment": func(p *Probe) { p.Basis.Experiments = "x" },
		"variable": func(p *Probe) { p.Basis.Variables = []string{"PYTORCH_ALLOC_CONF=expandable_segments:True"} },
	} {
		if key(change) == same {
			t.Errorf("another %s has the same key", what)
		}
	}
}

// The key of a search's run changes with the device memory and with the simulated world: its size, its ranks and the
// GPUs of a node.
func TestKeyOfWhatTheMachineWasTold(t *testing.T) {
	keys := map[string]string{}
	for what, c := range map[string]struct {
		memory      int64
		size, nodes int
		ranks       string
	}{"alone": {}, "memory": {memory: 1 << 30}, "more": {memory: 2 << 30}, "world": {size: 8, ranks: "0", nodes: 8},
		"larger": {size: 16, ranks: "0", nodes: 8},
		"rank":   {size: 8, ranks: "7", nodes: 8}, "nodes": {size: 8, ranks: "0", nodes: 4}} {
		m, err := collect.OpenPhantom("h200", collect.PhantomOptions{MemoryBytes: c.memory})
		if err != nil {
			t.Fatal(err)
		}
		e := collect.Experiment{Machine: m, Command: []string{"python", "train.py"}}
		if c.size > 0 {
			if e.World, err = collect.WorldOf(&c.size, c.ranks, c.nodes); err != nil {
				t.Fatal(err)
			}
		}
		s := Search[answer]{Basis: func(context.Context, *collect.Experiment) (collect.Basis, error) {
			return collect.Basis{}, nil
		}}
		key, err := s.key(context.Background(), &e)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := keys[key]; ok {
			t.Errorf("%s and %s have one key", what, other)
		}
		keys[key] = what
	}
}

// folder is a temporary folder whose files get modification times relative to at.
type folder struct {
	t   *testing.T
	dir string
	at  time.Time
}

func newFolder(t *testing.T) *folder {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &folder{t, dir, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// put writes an empty file whose modification time is the given number of hours after the folder's time.
func (f *folder) put(name string, hours int) {
	f.t.Helper()
	f.write(name, "", hours)
}

func (f *folder) write(name, content string, hours int) {
	f.t.Helper()
	path, at := filepath.Join(f.dir, name), f.at.Add(time.Duration(hours)*time.Hour)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) changed(hours int, got Change) {
	f.t.Helper()
	if want := f.at.Add(time.Duration(hours) * time.Hour); got.Unknown || !got.Last.Equal(want) {
		f.t.Errorf("changed %+v, want %s", got, want)
	}
}

// Changed returns when a script last changed. Files that the script may import or read as settings count as the script
// does. Data, caches and the folders of runs do not count.
func TestChanged(t *testing.T) {
	f := newFolder(t)
	f.put("train.py", 0)
	f.put("data.bin", 9)
	f.put("__pycache__/train.pyc.py", 9)
	f.put("old/one/"+schemas.ManifestFile, 9)
	command := []string{"python", "train.py"}
	f.changed(0, Changed(f.dir, command))
	f.put("models/net.py", 1)
	f.changed(1, Changed(f.dir, command))
	if got := Changed(f.dir, nil); got.Unknown || !got.Last.IsZero() {
		t.Errorf("a built-in experiment changed %+v", got)
	}
	f.put("conf/large.yaml", 2)
	f.put("train", 3) // a script need not end in .py
	f.changed(3, Changed(f.dir, []string{"python", "train"}))
	f.put("elsewhere/conf.yaml", 5)
	f.put("src/train.py", 0)
	f.changed(0, Changed(filepath.Join(f.dir, "src"), []string{"python", "train.py"}))
	f.changed(5, Changed(filepath.Join(f.dir, "src"), []string{"python", "train.py",
		"--config=../elsewhere/conf.yaml"}))
}

// Changed also looks at the files beside the script's folder and in the folder in which the command runs, since a
// script can import them. Python environments and hidden folders do not count.
func TestChangedBesideTheScriptsFolder(t *testing.T) {
	f := newFolder(t)
	command := []string{"python", "scripts/train.py"}
	f.put("scripts/train.py", 0)
	f.put(".hidden/net.py", 9)
	f.put("env/pyvenv.cfg", 0)
	f.put("env/lib/net.py", 9)
	f.put("conda/conda-meta/history", 0)
	f.put("conda/lib/net.py", 9)
	f.changed(0, Changed(f.dir, command))
	f.put("model/net.py", 1)
	f.changed(1, Changed(f.dir, command))
	f.put(".hidden/train.py", 2) // the folder that has the script counts even if it is hidden
	f.changed(9, Changed(f.dir, []string{"python", ".hidden/train.py"}))
	other := newFolder(t)
	f.changed(0, Changed(other.dir, []string{"python", filepath.Join(f.dir, "scripts", "train.py")}))
	other.put("model/net.py", 3)
	f.changed(3, Changed(other.dir, []string{"python", filepath.Join(f.dir, "scripts", "train.py")}))
}

// If Changed cannot tell which script a command runs, it looks at the whole folder in which the command runs.
func TestChangedWithoutAScript(t *testing.T) {
	f := newFolder(t)
	f.put("pkg/train.py", 1)
	f.put("run.sh", 2)
	for _, command := range [][]string{{"python", "-m", "pkg.train"}, {"torchrun", "-m", "pkg.train"},
		{"bash", "run.sh"}, {"./run.sh"}} {
		f.changed(2, Changed(f.dir, command))
	}
	f.put("pkg/net.py", 3)
	f.changed(3, Changed(f.dir, []string{"python", "-m", "pkg.train"}))
}

// Changed leaves out dpsight's stores and output folders. The files in these folders are newer than the runs: if they
// counted, no run could be reused.
func TestChangedLeavesOutWhatDpsightWrites(t *testing.T) {
	f := newFolder(t)
	f.put("train.py", 0)
	f.put("runs/fit-n/fit.json", 9)
	f.put("runs/suite.json", 9)
	f.put("out/fit.json", 9)
	f.put("fit.json", 9)
	command := []string{"python", "train.py"}
	f.changed(0, Changed(f.dir, command, filepath.Join(f.dir, "runs"), filepath.Join(f.dir, "out"),
		filepath.Join(f.dir, "fit.json")))
	f.changed(9, Changed(f.dir, command, filepath.Join(f.dir, "runs"), filepath.Join(f.dir, "out")))
	f.put("train.py", 10) // if the store is the script's own folder, the script still counts
	f.changed(10, Changed(f.dir, command, f.dir))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(f.dir, link); err != nil {
		t.Skip(err)
	}
	f.put("train.py", 0)
	f.changed(0, Changed(link, command, filepath.Join(link, "runs"), filepath.Join(link, "out"),
		filepath.Join(f.dir, "fit.json")))
	f.put("lib/net.py", 4)
	f.changed(4, Changed(link, command, filepath.Join(link, "runs"), filepath.Join(link, "out"),
		filepath.Join(f.dir, "fit.json")))
}

// Changed leaves out the files of a report and dpsight's documents in the working folder. Changed counts other files
// beside reports and documents, since these files may belong to the script.
func TestChangedLeavesOutReportsAndDocuments(t *testing.T) {
	f := newFolder(t)
	command := []string{"python", "train.py"}
	f.put("train.py", 0)
	f.put("out/results.json", 9)
	f.put("base.json", 9)
	if err := os.WriteFile(filepath.Join(f.dir, "out", schemas.ReportFiles), []byte("results.json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.changed(9, Changed(f.dir, command)) // base.json does not yet have a schema of dpsight
	f.write("base.json", "{\n  \"schema\": \"dpsight.baseline/2\"\n}", 9)
	f.changed(0, Changed(f.dir, command))
	f.put("out/settings.yaml", 3)
	f.changed(3, Changed(f.dir, command))
}

// If there are too many files, Changed cannot say when the script last changed, so the search reuses no earlier run.
func TestChangedAmongTooManyFiles(t *testing.T) {
	f := newFolder(t)
	f.put("zz/train.py", 0)
	for i := range mostFiles + 1 {
		file, err := os.Create(filepath.Join(f.dir, "zz", time.Unix(int64(i), 0).Format("20060102150405")))
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	if got := Changed(f.dir, []string{"python", "zz/train.py"}); !got.Unknown || !got.after(time.Now().Add(time.Hour)) {
		t.Errorf("%+v", got)
	}
}

// A search names its runs after --name. The search removes secrets from --name before it makes a folder's name from
// --name.
func TestPlantedInName(t *testing.T) {
	s := Search[answer]{Range: Range{Name: "n"}, Template: collect.Experiment{Name: "of-hush@hush!77",
		Command: []string{"python", "train.py", "--token", "hush@hush!77", "{n}"}}}
	cell := &Cell{}
	e, err := s.experiment(cell, 5)
	if err != nil || e.Name != "of-n5" || cell.Method != "of-***" {
		t.Errorf("%q of %q: %v", e.Name, cell.Method, err)
	}
}
