package grammar

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
)

// command is a command line of dpsight's kind: options, then a command of the user's.
type command struct {
	Predict struct {
		Device  string   `short:"d"`
		Steps   string   `help:"…"`
		Quiet   bool     `help:"…"`
		LR      string   `name:"lr" group:"Built-in experiment: training"`
		Command []string `arg:"" optional:"" passthrough:"partial"`
	} `cmd:""`
}

func parse(t *testing.T, args ...string) (*command, *kong.Context, error) {
	var c command
	parser, err := kong.New(&c, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	line, err := Parse(parser, args)
	return &c, line, err
}

// A negative number is the value of the option before it. A script's own numbers are not changed.
func TestNegativeNumbersAreValues(t *testing.T) {
	for _, test := range []struct {
		args, command []string
		steps         string
	}{
		{[]string{"predict", "--steps", "-3", "python", "x.py"}, []string{"python", "x.py"}, "-3"},
		{[]string{"predict", "--steps=-3", "--device", "-.5", "python", "--steps", "-4"},
			[]string{"python", "--steps", "-4"}, "-3"},
		{[]string{"predict", "python", "x.py", "--steps", "-3"}, []string{"python", "x.py", "--steps", "-3"}, ""},
	} {
		c, _, err := parse(t, test.args...)
		if err != nil || c.Predict.Steps != test.steps || !slices.Equal(c.Predict.Command, test.command) {
			t.Errorf("%q: %+v, %v", test.args, c.Predict, err)
		}
	}
	for _, args := range [][]string{{"predict", "--steps", "-x"}, {"predict", "--nope", "-3"}} {
		if _, _, err := parse(t, args...); err == nil {
			t.Errorf("%q is no mistake", args)
		}
	}
}

// dpsight warns about its options behind a script that has no option of that name.
func TestOptionsBehindTheScript(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := script("plain.py", "device = torch.device('cuda')\n")
	parsed := script("parsed.py", `p.add_argument("--device"); p.add_argument("--no-quiet")`)
	field := script("field.py", "class Arguments:\n    device: str\n")
	for _, test := range []struct {
		args []string
		told string
	}{
		{[]string{plain, "--device", "t4"}, "--device t4 went to plain.py"},
		{[]string{plain, "--epochs", "1", "--steps=3", "--quiet"}, "--steps=3 --quiet went to plain.py"},
		{[]string{plain, "--device"}, "--device went to plain.py"},
		{[]string{plain, "--lr", "1"}, ""},
		{[]string{plain, "--help"}, ""},
		{[]string{plain, "t4"}, ""},
		{[]string{parsed, "--device", "t4"}, ""},
		{[]string{field, "--device", "t4"}, ""},
		{[]string{filepath.Join(dir, "none.py"), "--device", "t4"}, ""},
		{[]string{"-m", "train", "--device", "t4"}, ""},
	} {
		_, line, err := parse(t, append([]string{"predict", "python"}, test.args...)...)
		want := test.told
		if want != "" {
			want += ", like all that stands behind a script; dpsight's own options go before python"
		}
		if got := Behind(line); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", test.args, got, err, want)
		}
	}
}

// Entries of a text file appear in the help where a tag names them. A name that the file lacks is an error.
func TestOptionTexts(t *testing.T) {
	const entries = "one_two\n  Costs $1, or\n  one of ${enum}.\n\nrun\n  Runs it."
	var c struct {
		OneTwo string `help:"${one_two}" enum:"a,b" default:"a"`
		Run    struct {
			Plain bool `help:"As it stands."`
		} `cmd:"" help:"${run}"`
	}
	parser, err := kong.New(&c, OptionTexts(entries))
	if err != nil {
		t.Fatal(err)
	}
	run := parser.Model.Children[0]
	got := []string{parser.Model.Flags[1].Help, run.Help, run.Flags[0].Help}
	if want := []string{"Costs $1, or one of a,b.", "Runs it.", "As it stands."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var unknown struct {
		Flag bool `help:"${one}"`
	}
	if _, err := kong.New(&unknown, OptionTexts(entries)); err == nil {
		t.Error("an unknown name is no error")
	}
}
