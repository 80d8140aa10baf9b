package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

const script = `import torch
losses, last = [], None
# losses.append(loss)
def attempt(model):
    x = model.cuda()
    held = {}
    for i in range(3):
        held[i] = x
class Bank(torch.nn.Module):
    def forward(self, x):
        self.memory.append(x)
for batch in range(8):
    tokens = net(batch); kept = tokens[:, 0]
    losses.append(loss)
    x, y = batch
    try:
        with torch.no_grad():
            attempt(
                net)

    # what was tried
    except torch.OutOfMemoryError as e:
        last = e
    call(x=3)
class Log:
    def __init__(self, names):
        self.by_name, self.all = defaultdict(list), {name: [] for name in names}
        self.total, self.kinds = 0., {"loss": [], "norm": deque(maxlen=8)}
    def add(self, name, value):
        self.by_name[name].append(value)
        self.all[name] += [value]
        self.total = self.total + value
        self.kinds["loss"].extend([value])
`

func numbers(lines []schemas.Line) string {
	var out []string
	for _, l := range lines {
		out = append(out, fmt.Sprint(l.Number))
	}
	return strings.Join(out, " ")
}

// Bindings finds the lines that assign the variable that holds a tensor, within the function of the variable.
func TestBindings(t *testing.T) {
	files := Files{"train.py": strings.Split(script, "\n")}
	for holder, want := range map[string]string{
		"global losses[*] → grad_fn":           "14",
		"global losses":                        "14",
		"local self.memory[*] of Bank.train()": "11",
		"global last (exception caught at train.py:18) → frame of attempt() → local x": "23",
		"global log.by_name['loss'][*] → grad_fn":                                      "30",
		"global log.by_name":                   "30",
		"global log.all['loss'][*]":            "31",
		"local log.total of main()":            "32",
		"local log.kinds['loss'][*] of main()": "33",
		"global kept":                          "13",
		"global x":                             "5 15",
		"global y":                             "15",
		"local x of attempt()":                 "5",
		"local held[2] of attempt()":           "8",
		"local x of other()":                   "",
		"Bank.memory[*]":                       "11",
		"memory":                               "11",
		"encoder.memory":                       "11",
		"global net":                           "",
		"C++ alone":                            "",
		"cycle of Node.x":                      "",
		"":                                     "",
		"global losses.names['a'] → grad_fn":   "",
	} {
		if got := numbers(files.Bindings(holder)); got != want {
			t.Errorf("%s: lines %q, want %q", holder, got, want)
		}
	}
	got := files.Lines(regexp.MustCompile(`^\w+(\.\w+)?\.append\(`))
	if numbers(got) != "11 14" || got[0].Function != "forward" {
		t.Errorf("%+v", got)
	}
	many := Files{"train.py": slices.Repeat([]string{"kept = x"}, most+1)}
	if got := many.Bindings("global kept"); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// A holder's path names an exception by the line of the call that raised it. Caught finds the innermost try around that
// line, and returns the line of its except clause.
func TestCaught(t *testing.T) {
	files := Files{"src/train.py": strings.Split(script, "\n")}
	const holder = "exception caught at train.py:18 → frame of attempt() → local x"
	l := files.Caught(holder)
	if l == nil || l.Number != 22 || l.File != "src/train.py" || l.Text != "except torch.OutOfMemoryError as e:" {
		t.Errorf("%+v", l)
	}
	files["src/train.py"] = slices.Insert(files["src/train.py"], 21, "    except ValueError:", "        pass")
	if l := files.Caught(holder); l != nil {
		t.Errorf("one of two: %+v", l)
	}
	for _, holder := range []string{"exception caught at other.py:18", "exception caught at train.py:180",
		"exception caught at train.py:24", "global x", ""} {
		if l := files.Caught(holder); l != nil {
			t.Errorf("%s: %+v", holder, l)
		}
	}
}

func TestAssigned(t *testing.T) {
	for statement, want := range map[string]string{"ready = {k: net.cuda() for k in cases}": "ready",
		"self.teacher = copy(net)": "self.teacher", "a, b = 1, 2": "", "if x == y:": "", "x == y": "", "": ""} {
		if got := Assigned(statement); got != want {
			t.Errorf("%s: %q, want %q", statement, got, want)
		}
	}
}
