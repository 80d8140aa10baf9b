package experiments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

func TestArgs(t *testing.T) {
	params, err := Resolve(pairs("method=ghost preset=tiny learning_rate=0.00001"))
	if err != nil {
		t.Fatal(err)
	}
	params["bare"] = true // parameters of the collector, such as bare, are no options of the program
	want := "-m dpsight_experiments --method ghost --clipping flat --noise-multiplier 1 --max-grad-norm 1 --poisson " +
		"false" +
		" --model transformer --preset tiny --vocab-size 1000 --hidden-dim 64 --num-layers 2 --num-heads 4 " +
		"--seq-len 512" +
		" --batch-size 4 --physical-batch-size 4 --num-iter 10 --warmup-iter 2 --optimizer adamw" +
		" --learning-rate 1e-05" +
		" --precision fp32 --checkpointing false --zero-grad default --seed 0"
	if got := strings.Join(Args(params), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFSHoldsTheProgramAndNothingElse(t *testing.T) {
	want, got := []string{"options.json"}, []string{}
	err := filepath.WalkDir("dpsight_experiments", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".py" {
			want = append(want, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil || len(want) == 1 {
		t.Fatal(want, err)
	}
	err = fs.WalkDir(FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, path)
		}
		return err
	})
	slices.Sort(want)
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v\nwant %v", got, err, want)
	}
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
	command := exec.Command(testkit.Python(t), "-B", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	// The tensors are tiny, so several threads would spend more time on waiting for each other than on the
	// computation.
	command.Env = append(os.Environ(), "OMP_NUM_THREADS=1",
		fmt.Sprintf("DPSIGHT_TEST_WITH_REST=%t", testkit.WithRest()))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	} else if !strings.Contains(string(out), "\nOK") {
		t.Fatalf("no test passed\n%s", out)
	}
}

// The unpacked Python program of the built-in experiments accepts the options that Args returns, and trains.
func TestUnpackedProgramTrains(t *testing.T) {
	python, folder := testkit.Python(t), unpack(t)
	out, err := inPython(t, folder, python, nil, trainingArgs(t, "method=ghost")...)
	if err != nil || !strings.Contains(out, "step 2/2 loss ") || strings.Contains(out, "Warning") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each built-in method listed here trains with the given options. One Python process trains all methods, so that it
// imports torch only once.
func TestMethodsTrain(t *testing.T) {
	python, folder := testkit.Python(t), unpack(t)
	given := []string{
		"method=vanilla precision=bf16 checkpointing=true zero_grad=keep",
		"method=dpsgd physical_batch_size=2",
		"method=dpsgd clipping=adaptive physical_batch_size=1",
		"method=functorch precision=bf16",
		"method=ew poisson=true batch_size=1",
		"method=fgc poisson=true physical_batch_size=1 batch_size=1",
		"method=mixed_ghost",
		"method=flash precision=bf16 physical_batch_size=2",
		"method=bk clipping=per_layer",
		"method=flash_bk poisson=true batch_size=1",
		"method=norm_only zero_grad=none",
		"method=loop model=mlp",
		"method=dpsgd model=mlp optimizer=adam",
	}
	var all [][]string
	for _, g := range given {
		all = append(all, trainingArgs(t, g)[2:]) // without -m and the program's name
	}
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	const program = `
import json, sys
from dpsight_experiments.cli import main
for argv in json.load(sys.stdin):
    print("exit", main(argv), flush=True)`
	out, err := inPython(t, folder, python, input, "-c", program)
	if err != nil || strings.Contains(out, "Warning") {
		t.Errorf("%v\n%s", err, out)
	}
	if n, done := strings.Count(out, "step 2/2 loss "), strings.Count(out, "exit 0"); n != len(given) ||
		done != len(given) {
		t.Errorf("of %d experiments %d trained and %d ended well\n%s", len(given), n, done, out)
	}
}

func trainingArgs(t *testing.T, given string) []string {
	t.Helper()
	params, err := Resolve(pairs(given + " preset=tiny seq_len=32 num_iter=1 warmup_iter=1"))
	if err != nil {
		t.Fatal(err)
	}
	return append(Args(params), "--device", "cpu")
}

func inPython(t *testing.T, folder, python string, input []byte, args ...string) (string, error) {
	t.Helper()
	command := exec.Command(python, args...)
	command.Env = append(os.Environ(), "PYTHONPATH="+folder, "OMP_NUM_THREADS=1")
	command.Dir = t.TempDir()
	command.Stdin = bytes.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// The Go and the Python code for built-in experiments resolve the same options to the same values, and refuse the same
// options with the same message.
func TestBothSidesResolveAlike(t *testing.T) {
	python, folder := testkit.Python(t), unpack(t)
	cases := []map[string]string{}
	for _, given := range []string{
		"method=vanilla", "method=hooks preset=1b seq_len=64", "method=ghost preset=seed physical_batch_size=1",
		"method=ghost model=mlp seq_len=5 preset=tiny", "method=dpsgd model=mlp mlp_dims=8,4 batch_size=2 " +
			"checkpointing=off",
		"method=vanilla checkpointing=on learning_rate=1e-3 clipping=adaptive", "method=bk clipping=per_layer",
		"method=ghost hidden_dim=30",
		"method=functorch", "method=ew grad_sample_mode=hooks", "method=ew precision=bf16", "method=loop batch_size=3",
		"method=naive physical_batch_size=2",
		"method=dpsgd clipping=adaptive noise_multiplier=0.1 unclipped_num_std=0.0500",
		"method=dpsgd clipping=adaptive min_clipbound=0.5",
		"method=dpsgd clipping=adaptive min_clipbound=1e-7 max_clipbound=1e-7", "method=fgc poisson=on",
		"method=nonsense", "method=Norm-Only noise_multiplier=3",
		"method=dpsgd clipping=adaptive target_unclipped_quantile=1.5",
		"method=ghost batch_size=-1", "method=ghost model=mlp preset=medium", "method=vanilla clipping=no",
		"preset=tiny",
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
