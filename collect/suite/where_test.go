package suite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas/where"
)

func TestWhere(t *testing.T) {
	s := &scope{builtin: true, names: []string{"bare", "method", "batch_size", "physical_batch_size", "learning_rate",
		"checkpointing", "preset"}}
	params := map[string]any{"bare": false, "method": "dpsgd", "batch_size": int64(32), "physical_batch_size": int64(8),
		"learning_rate": 1e-3, "checkpointing": false}
	for text, want := range map[string]where.Verdict{
		"physical_batch_size <= batch_size":                              where.Holds,
		"physical-batch-size<=batch-size":                                where.Holds,
		"batch_size < physical_batch_size":                               where.Fails,
		"batch_size = 32 and method=dpsgd":                               where.Holds,
		"32 == batch_size":                                               where.Holds,
		"batch_size >= 32 and batch_size <= 32":                          where.Holds,
		"method == dpsgd":                                                where.Holds,
		"method == DPSGDTrainer":                                         where.Holds,
		`method != "ghost"`:                                              where.Holds,
		"method == ghost or batch_size == 32":                            where.Holds,
		"not method == dpsgd":                                            where.Fails,
		"not (method == ghost or batch_size == 32)":                      where.Fails,
		"method == ghost or method == dpsgd and batch_size > 99":         where.Fails,
		"learning_rate == 0.001":                                         where.Holds,
		"learning_rate < 1e-2, batch_size != 8":                          where.Holds,
		"method == dpsgd, batch_size == 8 or batch_size == 16":           where.Fails,
		"checkpointing == no":                                            where.Holds,
		"bare == false":                                                  where.Holds,
		"preset == tiny":                                                 where.Unknown,
		"not preset == tiny":                                             where.Unknown,
		"preset == tiny or method == dpsgd":                              where.Holds,
		"preset == tiny and method == ghost":                             where.Fails,
		"preset == tiny, method == dpsgd":                                where.Unknown,
		"method < 3":                                                     where.Unknown,
		strings.Repeat("(", 99) + "bare == no" + strings.Repeat(")", 99): where.Holds,
	} {
		c, err := where.Parse(text, words{s})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := c(params); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                         "it ends where a parameter or a value should be",
		"batch_size":               "batch_size is followed by no comparison",
		"batch_size <=":            "it ends where",
		"batch_size === 3":         "= stands where",
		"batch_size == 3 4":        "4 is not expected",
		"batch_sise == 3":          "did you mean batch_size",
		"4 < 5":                    `unknown option "4"`,
		"batch_size < big":         "big is not a number",
		"(batch_size == 3":         "a parenthesis is not closed",
		"batch_size == 3)":         ") is not expected",
		"batch_size == 3 and":      "it ends where",
		"and batch_size == 3":      "and stands where",
		"batch_size == system(rm)": "( is not expected",
		"batch_size == 3; x":       `"; x" cannot be read`,
		`method == "dpsgd`:         `"\"dpsgd" cannot be read`,
		strings.Repeat("not ", 200) + "bare == no": "nested too deeply",
	} {
		if _, err := where.Parse(text, words{s}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// randomWhere returns a random condition, and a function that decides the condition for a cell.
func randomWhere(r *rand.Rand, depth int) (string, func(map[string]any) bool) {
	names := []string{"a", "b", "c"}
	if depth == 0 || r.IntN(3) == 0 {
		x, y, n := names[r.IntN(3)], names[r.IntN(3)], int64(r.IntN(4))
		op := []string{"==", "!=", "<", "<=", ">", ">="}[r.IntN(6)]
		decide := func(p, q int64) bool {
			return map[string]bool{"==": p == q, "!=": p != q, "<": p < q, "<=": p <= q, ">": p > q, ">=": p >= q}[op]
		}
		if r.IntN(2) == 0 {
			return fmt.Sprintf("%s %s %d", x, op, n), func(m map[string]any) bool { return decide(m[x].(int64), n) }
		}
		return x + op + y, func(m map[string]any) bool { return decide(m[x].(int64), m[y].(int64)) }
	}
	left, l := randomWhere(r, depth-1)
	right, q := randomWhere(r, depth-1)
	switch r.IntN(3) {
	case 0:
		return "(" + left + ") and (" + right + ")", func(m map[string]any) bool { return l(m) && q(m) }
	case 1:
		return "((" + left + ") or " + right + ")", func(m map[string]any) bool { return l(m) || q(m) }
	}
	return "not (" + left + ")", func(m map[string]any) bool { return !l(m) }
}

// For random matrices, exclusions and conditions, a suite has exactly the experiments that nested loops over the
// matrix find.
func TestMatrixAgainstBruteForce(t *testing.T) {
	empty := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		values := map[string][]int64{}
		file := "name: random\ncommand: [run, \"{a}\", \"{b}\", \"{c}\"]\nmatrix:\n"
		for _, name := range []string{"a", "b", "c"} {
			values[name] = []int64{0, 1, 2, 3}[:1+r.IntN(4)]
			r.Shuffle(len(values[name]), func(i, j int) {
				values[name][i], values[name][j] = values[name][j], values[name][i]
			})
			file += fmt.Sprintf("  %s: [%s]\n", name, strings.ReplaceAll(strings.Trim(fmt.Sprint(values[name]), "[]"),
				" ", ", "))
		}
		type entry map[string][]int64
		var excludes []entry
		file += "exclude:\n"
		for range 1 + r.IntN(3) {
			e := entry{}
			var parts []string
			for _, name := range []string{"a", "b", "c"}[:1+r.IntN(3)] {
				e[name] = []int64{int64(r.IntN(4))}
				text := fmt.Sprint(e[name][0])
				if r.IntN(2) == 0 {
					e[name] = append(e[name], int64(r.IntN(4)))
					text = fmt.Sprintf("[%d, %d]", e[name][0], e[name][1])
				}
				parts = append(parts, name+": "+text)
			}
			excludes = append(excludes, e)
			file += "  - {" + strings.Join(parts, ", ") + "}\n"
		}
		where, meaning := randomWhere(r, 3)
		file += "where: '" + where + "'\n"
		var want []string
		for _, a := range values["a"] {
			for _, b := range values["b"] {
				for _, c := range values["c"] {
					cell := map[string]any{"a": a, "b": b, "c": c}
					out := !meaning(cell)
					for _, e := range excludes {
						all := true
						for name, list := range e {
							found := false
							for _, v := range list {
								found = found || v == cell[name]
							}
							all = all && found
						}
						out = out || all
					}
					if !out {
						want = append(want, fmt.Sprintf("run %d %d %d", a, b, c))
					}
				}
			}
		}
		suite, err := Parse("random.yaml", []byte(file))
		if len(want) == 0 {
			if empty++; err == nil || !strings.Contains(err.Error(), "exclude and where leave none") {
				t.Fatalf("seed %d: %v\n%s", seed, err, file)
			}
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, file)
		}
		var got []string
		keys, names := map[string]bool{}, map[string]bool{}
		for _, x := range suite.Experiments {
			got = append(got, strings.Join(x.Command, " "))
			keys[x.Key], names[x.Name] = true, true
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(keys) != len(want) || len(names) != len(want) {
			t.Fatalf("seed %d: %d keys, %d names\ngot  %v\nwant %v\n%s", seed, len(keys), len(names), got, want, file)
		}
		if total := len(values["a"]) * len(values["b"]) * len(values["c"]); suite.LeftOut != total-len(want) {
			t.Errorf("seed %d: %d left out of %d, %d left", seed, suite.LeftOut, total, len(want))
		}
	}
	if empty == 0 || empty > 300 {
		t.Errorf("%d of 400 suites are empty: the others test little", empty)
	}
}

func FuzzWhere(f *testing.F) {
	for _, seed := range []string{"physical_batch_size <= batch_size", "not (a == 1 or b != x), c < 3.5",
		`a == "q" and 'b' != b`, "((", "== == ==", "a<=b<=c"} {
		f.Add(seed)
	}
	s := &scope{names: []string{"bare", "a", "b", "c", "batch_size", "physical_batch_size"}}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := where.Parse(text, words{s})
		if err != nil {
			if c != nil || err.Error() == "" {
				t.Errorf("%q: both a constraint and %v", text, err)
			}
			return
		}
		for _, params := range []map[string]any{{}, {"a": int64(1), "b": "x", "c": 2.5, "bare": true,
			"batch_size": int64(4)}} {
			v := c(params)
			negated, err := where.Parse("not ("+text+")", words{s})
			if err == nil && !strings.Contains(text, ",") && negated(params) != -v {
				t.Errorf("%q: %d, and not of it %d", text, v, negated(params))
			}
		}
	})
}
