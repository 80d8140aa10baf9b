package mask

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const namesFile = "testdata/names.json"

type nameCases struct {
	Flags, Variables struct{ Secret, Harmless []string }
	Gathered         []struct {
		Argv             []string
		Environ          map[string]string
		Secret, Harmless []string
	}
}

func TestNames(t *testing.T) {
	b, err := os.ReadFile(namesFile)
	if err != nil {
		t.Fatal(err)
	}
	var cases nameCases
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	check := func(what string, rule func(string) bool, secret, harmless []string) {
		if len(secret) == 0 || len(harmless) == 0 {
			t.Errorf("no cases of %ss", what)
		}
		for i, name := range append(secret, harmless...) {
			if got, want := rule(name), i < len(secret); got != want {
				t.Errorf("%s %q: secret %t, want %t", what, name, got, want)
			}
		}
	}
	is := func(rule func(string) naming) func(string) bool {
		return func(name string) bool { return rule(name).level == strong }
	}
	check("flag", is(nameFlag), cases.Flags.Secret, cases.Flags.Harmless)
	check("variable", is(nameVariable), cases.Variables.Secret, cases.Variables.Harmless)
	for _, c := range cases.Gathered {
		var environ []string
		for name, value := range c.Environ {
			environ = append(environ, name+"="+value)
		}
		s := Gather(c.Argv, environ, nil)
		for _, text := range c.Secret {
			if got := s.String(text); got != Mask {
				t.Errorf("%v, %v: %q stays %q", c.Argv, environ, text, got)
			}
		}
		for _, text := range c.Harmless {
			if got := s.String(text); got != text {
				t.Errorf("%v, %v: %q becomes %q", c.Argv, environ, text, got)
			}
		}
	}
}

// agentScript is a Python program that checks that the agent's masking by names gives the results that the cases file
// requires of the collector.
const agentScript = `
import json, sys
sys.path.insert(0, sys.argv[1])
import masking as m
cases = json.load(open(sys.argv[2], encoding="utf-8"))
wrong = []
for what, name in (("flags", m.name_flag), ("variables", m.name_variable)):
    rule = lambda n: name(n).level == 2
    for verdict in ("secret", "harmless"):
        wrong += [f"{what}: {n!r} is not {verdict}" for n in cases[what][verdict] if rule(n) != (verdict == "secret")]
for case in cases["gathered"]:
    secrets = m.gather(case["environ"], case["argv"])
    m._secrets = lambda: secrets
    wrong += [f"{case}: {x!r} stays {m.mask(x)!r}" for x in case["secret"] if m.mask(x) != m.MASK]
    wrong += [f"{case}: {x!r} becomes {m.mask(x)!r}" for x in case["harmless"] if m.mask(x) != x]
secrets = m.gather({"X_TOKEN": "reason"}, [])
m._secrets = lambda: secrets
value = {"reason": ["the reason", 5, True, None], "api_key": "abc", "sort_key": "name", "tokens": "7"}
want = {"reason": ["the ***", 5, True, None], "api_key": m.MASK, "sort_key": "name", "tokens": "7"}
if m.masked(value) != want:
    wrong.append(f"masked gives {m.masked(value)}")
print("\n".join(wrong))
`

func TestAgentAgrees(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	folder, err := filepath.Abs("../agent/python/dpsight")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-I", "-B", "-c", agentScript, folder, namesFile)
	out, err := cmd.CombinedOutput()
	if text := strings.TrimSpace(string(out)); err != nil || text != "" {
		t.Errorf("%v\n%s", err, text)
	}
}
