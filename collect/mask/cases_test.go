package mask

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planted is a case of testdata/planted.json: a secret, and where it is planted. The test removes each ~ from the
// file, which keeps other scanners from finding the secrets there.
type planted struct {
	Form    string
	Argv    []string
	Environ map[string]string
	Config  map[string]any
	Text    string
	Name    string
	Secret  string
}

func plantedCases(t *testing.T) []planted {
	t.Helper()
	b, err := os.ReadFile("testdata/planted.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []planted
	if err := json.Unmarshal(bytes.ReplaceAll(b, []byte("~"), nil), &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// Every planted secret is masked where it is planted. If it is planted in the command or in a variable, it is also
// masked in other text.
func TestPlanted(t *testing.T) {
	forms := map[string]bool{}
	cases := plantedCases(t)
	for _, c := range cases {
		forms[c.Form] = true
		s := Gather(c.Argv, entries(c.Environ), nil)
		var shown []any
		switch {
		case c.Argv != nil:
			shown = []any{s.Command(c.Argv), s.String("value " + c.Secret + ".")}
		case c.Environ != nil:
			shown = []any{s.Environment(c.Environ), s.String("value " + c.Secret + ".")}
		case c.Config != nil:
			shown = []any{s.Params(c.Config)}
		case c.Name != "":
			shown = []any{s.Label(c.Name)}
		default:
			var out bytes.Buffer
			w := s.NewLineWriter(&out)
			for b := range slices.Chunk([]byte("before\n"+c.Text+"\nafter\n"), 7) {
				w.Write(b)
			}
			w.Flush()
			if text := out.String(); !strings.HasPrefix(text, "before\n") || !strings.HasSuffix(text, "\nafter\n") {
				t.Errorf("%s: %q becomes %q", c.Form, c.Text, text)
			}
			shown = []any{s.String(c.Text), out.String()}
		}
		b, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), c.Secret) || !strings.Contains(string(b), Mask) {
			t.Errorf("%s: %s stays in %s", c.Form, c.Secret, b)
		}
	}
	if len(cases) < 60 || len(forms) < 30 {
		t.Errorf("%d secrets of %d forms", len(cases), len(forms))
	}
}

func entries(environment map[string]string) (out []string) {
	for name, value := range environment {
		out = append(out, name+"="+value)
	}
	return out
}

type harmlessCases struct {
	Texts    []string
	Commands [][]string
}

func TestHarmless(t *testing.T) {
	b, err := os.ReadFile("testdata/harmless.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases harmlessCases
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if n := len(cases.Texts) + len(cases.Commands); n < 200 {
		t.Errorf("only %d strings", n)
	}
	s := Gather(nil, nil, nil)
	for _, text := range cases.Texts {
		if got := s.String(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, command := range cases.Commands {
		argv := append([]string{"python", "train.py"}, command...)
		if got := Gather(argv, nil, nil).Command(argv); !slices.Equal(got, argv) {
			t.Errorf("%v becomes %v", argv, got)
		}
	}
}

const agentCases = `
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import masking as m
text = lambda name: pathlib.Path(sys.argv[2], name).read_text("utf-8")
wrong = []
def secrets(environ, argv):
    found = m.gather(environ, argv)
    m._secrets = lambda: found
for c in json.loads(text("planted.json").replace("~", "")):
    secrets(c.get("environ", {}), c.get("argv", []))
    if "config" in c:
        shown = json.dumps(m.masked(c["config"]))
    else:
        shown = m.mask(c.get("text") or c.get("name", "value " + c["secret"] + "."))
    if c["secret"] in shown or m.MASK not in shown:
        wrong.append(f"{c['form']}: {c['secret']} stays in {shown}")
cases = json.loads(text("harmless.json"))
secrets({}, [])
wrong += [f"{x!r} becomes {m.mask(x)!r}" for x in cases["texts"] if m.mask(x) != x]
for command in cases["commands"]:
    if found := m.gather({}, ["python", "train.py", *command]):
        wrong.append(f"{command} has {found}")
print("\n".join(wrong))
`

// The agent's Python code, with the patterns that the collector writes for it, masks the planted cases as the
// collector does.
func TestAgentMasksTheSame(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("the agent's masking is not compared without a python3: ", err)
	}
	folder := t.TempDir()
	for _, name := range []string{"masking.py", "masking_rules.json"} {
		b, err := os.ReadFile(filepath.Join("../agent/python/dpsight", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	patterns, err := PatternsForAgent()
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, AgentFile), patterns, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-I", "-B", "-W", "error", "-c", agentCases, folder, "testdata").CombinedOutput()
	if text := strings.TrimSpace(string(out)); err != nil || text != "" {
		t.Errorf("%v\n%s", err, text)
	}
	// Python must also compile the patterns that no planted case uses.
	const compileAll = `import json, pathlib, re, sys
for p in json.loads(pathlib.Path(sys.argv[1]).read_text()): re.compile(p["pattern"], re.ASCII)`
	out, err = exec.Command(python, "-I", "-B", "-W", "error", "-c", compileAll,
		filepath.Join(folder, AgentFile)).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// dpsight takes many of its patterns from the rules of a scanner for secrets. There must be at least 90, also after an
// update of the scanner's rules.
func TestScannersRules(t *testing.T) {
	if n := len(patterns()); n < 90 {
		t.Errorf("only %d patterns", n)
	}
	for i := range patterns() {
		patterns()[i].regexp()
	}
}
