package experiments

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestArgs(t *testing.T) {
	params, err := Resolve(pairs("method=ghost preset=tiny learning_rate=0.00001"))
	if err != nil {
		t.Fatal(err)
	}
	params["bare"] = true // the collector's own parameters are no options
	want := "-m dpsight_experiments --method ghost --clipping flat --noise-multiplier 1 --max-grad-norm 1" +
		" --model transformer --preset tiny --vocab-size 1000 --hidden-dim 64 --num-layers 2 --num-heads 4 --seq-len 512" +
		" --batch-size 4 --physical-batch-size 4 --num-iter 3 --warmup-iter 2 --optimizer adamw --learning-rate 1e-05" +
		" --precision fp32 --checkpointing false --zero-grad default --seed 0"
	if got := strings.Join(Args(params), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFSHoldsTheProgramAndNothingElse(t *testing.T) {
	onDisk, err := filepath.Glob("dpsight_experiments/*.py")
	if err != nil || len(onDisk) == 0 {
		t.Fatal(onDisk, err)
	}
	want := append(onDisk, "options.json")
	var got []string
	err = fs.WalkDir(FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, path)
		}
		return err
	})
	for i := range want {
		want[i] = filepath.ToSlash(want[i])
	}
	slices.Sort(want)
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v\nwant %v", got, err, want)
	}
}

// testPython returns the interpreter (with torch and Opacus) that tests of the
// Python side run with.
func testPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("DPSIGHT_TEST_PYTHON")
	if python == "" {
		t.Skip("DPSIGHT_TEST_PYTHON names no interpreter with torch and opacus")
	}
	return python
}

// unpack writes the embedded program to a new folder, as the collector does.
func unpack(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, FS()); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestPythonSide(t *testing.T) {
	command := exec.Command(testPython(t), "-B", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	} else if !strings.Contains(string(out), "\nOK") {
		t.Fatalf("no test passed\n%s", out)
	}
}

// The unpacked program takes Args and trains, with every method and model.
func TestUnpackedProgramTrains(t *testing.T) {
	python, folder := testPython(t), unpack(t)
	for _, given := range []string{
		"method=vanilla precision=bf16 checkpointing=true zero_grad=keep",
		"method=dpsgd physical_batch_size=2",
		"method=ghost",
		"method=dpsgd model=mlp optimizer=adam",
	} {
		params, err := Resolve(pairs(given + " preset=tiny seq_len=32 num_iter=1 warmup_iter=1"))
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command(python, append(Args(params), "--device", "cpu")...)
		command.Env = append(os.Environ(), "PYTHONPATH="+folder)
		command.Dir = t.TempDir()
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "step 2/2 loss ") || strings.Contains(string(out), "Warning") {
			t.Errorf("%s: %v\n%s", given, err, out)
		}
	}
}

// Both sides resolve the same options to the same values, and refuse the same.
func TestBothSidesResolveAlike(t *testing.T) {
	python, folder := testPython(t), unpack(t)
	cases := []map[string]string{}
	for _, given := range []string{
		"method=vanilla", "method=hooks preset=1b seq_len=64", "method=ghost preset=seed physical_batch_size=1",
		"method=ghost model=mlp seq_len=5 preset=tiny", "method=dpsgd model=mlp mlp_dims=8,4 batch_size=2 checkpointing=off",
		"method=vanilla checkpointing=on learning_rate=1e-3 clipping=adaptive", "method=bk", "method=ghost hidden_dim=30",
		"method=ghost batch_size=-1", "method=ghost model=mlp preset=medium", "method=vanilla clipping=no", "preset=tiny",
		"method=ghost clipping=adaptive", "method=ghost checkpointing=1", "method=vanilla model=mlp checkpointing=true",
	} {
		cases = append(cases, pairs(given))
	}
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	const program = `
import dataclasses, json, sys
from dpsight_experiments.options import UsageError, resolve
results = []
for given in json.load(sys.stdin):
    try:
        results.append({k: v for k, v in dataclasses.asdict(resolve(given)).items() if v is not None})
    except UsageError as error:
        results.append(str(error))
json.dump(results, sys.stdout)`
	command := exec.Command(python, "-c", program)
	command.Env = append(os.Environ(), "PYTHONPATH="+folder)
	command.Stdin = strings.NewReader(string(input))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cases) {
		t.Fatal(err, string(out))
	}
	for i, given := range cases {
		var want any
		if params, err := Resolve(given); err != nil {
			want = err.Error()
		} else {
			asJSON, err := json.Marshal(params)
			if err != nil || json.Unmarshal(asJSON, &want) != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%v\npython %v\ngo     %v", given, got[i], want)
		}
	}
}
