package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// githubAction has the parts of action.yml that a test needs.
type githubAction struct {
	Inputs map[string]struct {
		Description string
		Default     *string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	ID, Name, If, Uses, Shell, Run string
	WorkingDirectory               string `yaml:"working-directory"`
	Env, With                      map[string]string
}

func readAction(t *testing.T) (a githubAction) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "action.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A runner is a machine that runs an action's steps. A runner has no connection to GitHub. The runner's gh is a script
// that stores comments in a folder.
type runner struct {
	folder string            // the checkout
	temp   string            // RUNNER_TEMP
	path   string            // folders before the usual PATH
	values map[string]string // values of expressions
	failed string            // the step that failed; after it, only steps with if: always() run
	output string
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

func (r *runner) expand(t *testing.T, text string) string {
	return expression.ReplaceAllStringFunc(text, func(s string) string {
		name := expression.FindStringSubmatch(s)[1]
		v, known := r.values[name]
		if !known {
			t.Errorf("no value of %s", name)
		}
		return v
	})
}

// holds evaluates the conditions that occur in action.yml.
func (r *runner) holds(t *testing.T, condition string) bool {
	for part := range strings.SplitSeq(condition, " && ") {
		name, want, compared := strings.Cut(part, " ")
		if part == "always()" || part == "" {
			continue
		}
		v, known := r.values[name]
		if !known {
			t.Fatalf("no value of %s in %q", name, condition)
		}
		switch op, text, _ := strings.Cut(want, " "); {
		case !compared && v == "", op == "==" && v != strings.Trim(text, "'"), op == "!=" && v == strings.Trim(text, "'"):
			return false
		}
	}
	return true
}

// run runs the action's steps that are shell scripts, in order, as GitHub's runner does.
func (r *runner) run(t *testing.T, a *githubAction, with map[string]string) {
	t.Helper()
	for name, input := range a.Inputs {
		r.values["inputs."+name] = r.expand(t, *input.Default)
	}
	for name, v := range with {
		if _, known := a.Inputs[name]; !known {
			t.Fatalf("there is no input %s", name)
		}
		r.values["inputs."+name] = v
	}
	for i := range a.Runs.Steps {
		s := &a.Runs.Steps[i]
		always := strings.HasPrefix(s.If, "always()")
		if r.failed != "" && !always || !r.holds(t, s.If) || s.Run == "" {
			continue
		}
		outputs, paths := filepath.Join(t.TempDir(), "output"), filepath.Join(t.TempDir(), "path")
		environ := append(os.Environ(), "PATH="+r.path+":"+os.Getenv("PATH"), "RUNNER_TEMP="+r.temp,
			"GITHUB_OUTPUT="+outputs, "GITHUB_PATH="+paths, "GITHUB_REPOSITORY=me/mine",
			"GITHUB_STEP_SUMMARY="+filepath.Join(r.temp, "summary.md"))
		for k, v := range s.Env {
			environ = append(environ, k+"="+r.expand(t, v))
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		cmd.Dir, cmd.Env = filepath.Join(r.folder, r.expand(t, s.WorkingDirectory)), environ
		out, err := cmd.CombinedOutput()
		r.output += string(out)
		t.Logf("%s: %v\n%s", s.Name, err, out)
		if err != nil {
			r.failed = s.Name
		}
		for line := range strings.Lines(contents(outputs)) {
			name, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			r.values["steps."+s.ID+".outputs."+name] = v
		}
		for line := range strings.Lines(contents(paths)) {
			r.path = strings.TrimSpace(line) + ":" + r.path
		}
	}
}

// contents returns a file's text, "" if it does not exist.
func contents(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// fakeGH stores each comment of a pull request as a file in a folder, and finds comments that begin with the marker.
const fakeGH = `#!/bin/bash
shopt -s nullglob
all="$*"
case "$all" in
"api "*--paginate*) for f in "$COMMENTS"/*; do if head -n 1 "$f" | grep -qxF "$MARKER"; then basename "$f"; fi; done ;;
"api "*PATCH*repos/me/mine/issues/comments/*) id="${all#*comments/}"; cp "${all#*body=@}" "$COMMENTS/${id%% *}" ;;
"api "*POST*repos/me/mine/issues/7/comments*) cp "${all#*body=@}" "$COMMENTS/$(ls "$COMMENTS" | wc -l)" ;;
*) exit 1 ;;
esac
`

// put writes an executable file.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// git runs git in a folder.
func git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newRunner returns a machine with a repository of two commits. The second commit is the pull request's branch.
// base and files are the files of the two commits, by path.
func newRunner(t *testing.T, base, files map[string]string) *runner {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the action calls git")
	}
	temp := t.TempDir()
	r := &runner{folder: filepath.Join(temp, "checkout"), temp: filepath.Join(temp, "runner"),
		path: filepath.Join(temp, "bin")}
	put(t, filepath.Join(r.path, "gh"), strings.ReplaceAll(fakeGH, "$COMMENTS", filepath.Join(temp, "comments")))
	for _, dir := range []string{r.folder, r.temp, filepath.Join(temp, "comments")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git(t, r.folder, "init", "-q")
	put(t, filepath.Join(r.folder, "notes.txt"), "base\n")
	for name, text := range base {
		put(t, filepath.Join(r.folder, name), text)
	}
	git(t, r.folder, "add", ".")
	git(t, r.folder, "commit", "-qm", "base")
	sources, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	r.values = map[string]string{"github.event.pull_request.base.sha": git(t, r.folder, "rev-parse", "HEAD"),
		"github.event.pull_request.number": "7", "github.token": "t", "github.action_path": sources,
		"steps.check.outputs.ok": "", "steps.prepare.outputs.results": ""}
	for name, text := range files {
		put(t, filepath.Join(r.folder, name), text)
	}
	git(t, r.folder, "add", ".")
	git(t, r.folder, "commit", "--allow-empty", "-qm", "change")
	return r
}

func (r *runner) comments() []string {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(r.folder), "comments", "*"))
	var out []string
	for _, f := range files {
		out = append(out, contents(f))
	}
	return out
}

// replayer is a shell script that stands in for dpsight. For predict and collect, replayer copies a recorded run from a
// store: the run of the method that method.txt in the current folder names. replayer passes every other command to the
// real dpsight.
const replayer = `#!/bin/bash
case "$1" in predict|collect) ;; *) exec dpsight-itself "$@" ;; esac
while [ $# -gt 1 ]; do [ "$1" = --store ] && store="$2"; shift; done
mkdir -p "$store"
cp -r "$RECORDED"/*-"$(cat method.txt)"-* "$store"
`

// TestAction runs the action's scripts over recorded runs. If memory grew, the action fails and names the growth in
// one comment, which the next push updates. Without growth the action passes. With a baseline file, the action
// compares with that file instead of the base commit.
func TestAction(t *testing.T) {
	a := readAction(t)
	if a.Runs.Using != "composite" {
		t.Errorf("it is %q", a.Runs.Using)
	}
	itself, err := exec.LookPath("dpsight")
	if err != nil {
		t.Fatal(err)
	}
	store := journalStore(t)
	page := contents(filepath.Join("..", "..", "docs", "check.md"))
	for name, input := range a.Inputs {
		if input.Description == "" || input.Default == nil || !strings.Contains(page, "\n| `"+name+"` | ") {
			t.Errorf("the input %s has no description, no default or no row in docs/check.md", name)
		}
	}
	r := newRunner(t, map[string]string{"sub/method.txt": "vanilla"}, map[string]string{"sub/method.txt": "ghost",
		"sub/dpsight.yaml": "check:\n  thresholds: {peak: 1.01}\n"})
	put(t, filepath.Join(r.path, "dpsight-itself"), "#!/bin/sh\nexec '"+itself+"' \"$@\"\n")
	tool := filepath.Join(r.path, "recorded")
	put(t, tool, strings.ReplaceAll(replayer, "$RECORDED", store))
	input := map[string]string{"command": "python train.py", "working-directory": "sub", "dpsight": tool}
	push := func(more map[string]string) *runner {
		with := maps.Clone(input)
		maps.Copy(with, more)
		next := *r
		next.values, next.failed, next.output = maps.Clone(r.values), "", ""
		next.run(t, &a, with)
		return &next
	}
	grown := push(nil)
	if grown.failed != "Verdict" || grown.values["steps.check.outputs.ok"] != "false" {
		t.Fatalf("%q failed, ok is %q", grown.failed, grown.values["steps.check.outputs.ok"])
	}
	comments := r.comments()
	if len(comments) != 1 {
		t.Fatalf("%d comments", len(comments))
	}
	for _, want := range []string{"<!-- dpsight action: train -->\n<!-- dpsight check -->\n", "❌ dpsight check failed",
		"| regressed | ", "gradients of "} {
		if !strings.Contains(comments[0], want) {
			t.Errorf("no %q in\n%s", want, comments[0])
		}
	}
	if summary := contents(filepath.Join(r.temp, "summary.md")); !strings.Contains(summary, "| regressed | ") {
		t.Errorf("the summary is %q", summary)
	}
	results := grown.values["steps.prepare.outputs.results"]
	for _, name := range []string{"check.json", "check.xml", "check.sarif", "comment.md"} {
		if contents(filepath.Join(results, name)) == "" {
			t.Errorf("no %s", name)
		}
	}
	if passed := push(map[string]string{"thresholds": "peak=9900% time=9900%"}); passed.failed != "" ||
		passed.values["steps.check.outputs.ok"] != "true" {
		t.Errorf("what did not grow: %q failed", passed.failed)
	}
	if comments = r.comments(); len(comments) != 1 || !strings.Contains(comments[0], "✅ dpsight check") {
		t.Errorf("the comment was not updated: %q", comments)
	}
	must(t, r.folder, "check", "ghost", "--store", store, "--write-baseline", filepath.Join("sub", "b.json"))
	if held := push(map[string]string{"baseline": "b.json", "name": "other", "command": "",
		"suite": "quick"}); held.failed != "" {
		t.Errorf("beside a file: %q failed", held.failed)
	}
	if comments = r.comments(); len(comments) != 2 {
		t.Errorf("another name has %d comments", len(comments))
	}
	if none := push(map[string]string{"comment": "false", "name": "silent"}); len(r.comments()) != 2 ||
		none.failed != "Verdict" {
		t.Errorf("without a comment: %d comments, %q failed", len(r.comments()), none.failed)
	}
	for what, more := range map[string]map[string]string{"both": {"suite": "quick"}, "neither": {"command": ""}} {
		if wrong := push(more); wrong.failed != "Predict" || !strings.Contains(wrong.output, "::error::") {
			t.Errorf("%s: %q failed\n%s", what, wrong.failed, wrong.output)
		}
	}
	if wrong := push(map[string]string{"thresholds": "paek=1.1"}); wrong.failed != "Check" ||
		!strings.Contains(wrong.output, "did you mean peak?") {
		t.Errorf("a threshold that is none: %q failed\n%s", wrong.failed, wrong.output)
	}
	if wrong := push(map[string]string{"base": ""}); wrong.failed != "Predict the base" {
		t.Errorf("without a base: %q failed", wrong.failed)
	}
}
