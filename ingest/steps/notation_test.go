package steps

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

// parse reads marks from a compact notation, words separated by blanks:
//
// F forward, whole; F[ ... ] with marks inside. Letters after F: ~ no grad, e eval mode, ^ inside backward, - output
// not differentiable
//
//	B backward; B{ ... }. Letters: k keep_graph, c create_graph, G accumulates nothing, n nested, T functorch
//
// O0 optimizer number 0; O0< ... > V0 the same in one mark Letters after the number: ^ in backward, ! it raised D
// Opacus' step; D( ... ) X two-pass backward; X( ... ) Z zero_grad R recompute; R( ... ) W compiled region; W( ... ),
// W~( without grad U scaler.step; U( ... ) Uu scaler.update P:name( ... ) a phase, Ps:name( ... ) one of the agent's
// set-up stages S a dpsight.step(), S:4,8 with samples and tokens | a drain M:iwru the mode: instrumented, warm-up,
// recording, without phases OOM EXC EXIT E an engine's first mark
//
//	t1: before a word: on thread 1
//
// A closing word may be left out: the process died. Times are 10 ns a mark; a drain takes 1000.
func parse(t *testing.T, text string) ([]spool.Mark, map[uint32]string) {
	t.Helper()
	var marks []spool.Mark
	names, ids := map[uint32]string{}, map[string]uint32{}
	now := int64(1000)
	type open struct {
		kind spool.Kind
		end  uint8
		a    uint64
	}
	stacks := map[uint16][]open{}
	add := func(th uint16, k spool.Kind, flags uint8, a, b uint64) {
		now += 10
		marks = append(marks, spool.Mark{K: uint32(len(marks) + 1), Thread: th, Kind: k, Flags: flags, TimeNS: now,
			A: a, B: b})
	}
	if text != "" {
		add(0, spool.Start, 0, 0, 0)
	}
	for _, word := range strings.Fields(text) {
		var th uint16
		if i := strings.Index(word, ":"); i == 2 && word[0] == 't' {
			n, _ := strconv.Atoi(word[1:2])
			th, word = uint16(n), word[3:]
		}
		switch word {
		case "]", "}", ">", ")":
			s := stacks[th]
			if len(s) == 0 {
				t.Fatalf("%s closes nothing", word)
			}
			o := s[len(s)-1]
			stacks[th] = s[:len(s)-1]
			add(th, o.kind+1, o.end, o.a, 0)
			continue
		case "|":
			add(th, spool.DrainBegin, 0, 0, 0)
			now += 980
			add(th, spool.DrainEnd, 0, 0, 0)
			continue
		case "OOM":
			add(th, spool.OOM, 0, 0, 0)
			continue
		case "EXC":
			add(th, spool.Exception, 0, 0, 0)
			continue
		case "EXIT":
			add(th, spool.Exit, 0, 0, 0)
			continue
		case "E":
			add(th, spool.Engine, 0, 0, 0)
			continue
		}
		body := strings.TrimRight(word, "[{<(")
		opens := body != word
		has := func(s string) bool { return strings.Contains(body[1:], s) }
		flag := func(on bool, f uint8) uint8 {
			if on {
				return f
			}
			return 0
		}
		o := open{}
		var flags uint8
		switch body[0] {
		case 'F':
			o.kind = spool.ForwardBegin
			flags = flag(!has("~"), spool.FlagGrad) | flag(!has("e"), spool.FlagTraining) | flag(has("^"),
				spool.FlagInBackward)
			o.end = flags | flag(!has("-") && !has("~"), spool.FlagDifferentiable)
		case 'B':
			o.kind = spool.BackwardBegin
			flags = flag(has("k"), spool.FlagKeepGraph) | flag(has("c"), spool.FlagCreateGraph) | flag(!has("G"),
				spool.FlagAccumulate) |
				flag(has("n"), spool.FlagNestedRun) | flag(has("T"), spool.FlagFunctorch)
		case 'O':
			o.kind, flags = spool.OptimizerBegin, flag(has("^"), spool.FlagInBackward)
			o.end = flags | flag(has("!"), spool.FlagRepaired)
			n, err := strconv.Atoi(strings.TrimRight(body[1:], "^!"))
			if err != nil {
				t.Fatalf("%s: no optimizer number", word)
			}
			o.a = uint64(n)
		case 'V':
			n, err := strconv.Atoi(strings.TrimRight(body[1:], "^"))
			if err != nil {
				t.Fatalf("%s: no optimizer number", word)
			}
			add(th, spool.Updated, flag(!has("^"), spool.FlagEnds)|flag(has("^"), spool.FlagInBackward), uint64(n), 0)
			continue
		case 'D':
			o.kind = spool.DPStepBegin
		case 'X':
			o.kind = spool.DPBackwardBegin
		case 'Z':
			o.kind = spool.ZeroGradBegin
		case 'R':
			o.kind = spool.RecomputeBegin
		case 'W':
			o.kind, flags = spool.CompiledBegin, flag(!has("~"), spool.FlagGrad)
		case 'U':
			o.kind = spool.ScalerBegin
			if has("u") {
				o.a = 1
			}
		case 'P':
			stage := strings.HasPrefix(body, "Ps:")
			name := strings.TrimPrefix(strings.TrimPrefix(body, "Ps:"), "P:")
			flags = flag(stage, spool.FlagSetup)
			o.end = flags
			if ids[name] == 0 {
				ids[name] = uint32(len(ids) + 1)
				names[ids[name]] = name
			}
			o.kind, o.a = spool.PhaseBegin, uint64(ids[name])
		case 'S':
			var a, b uint64
			if fmt.Sscanf(body, "S:%d,%d", &a, &b); a > 0 {
				a, b = a+1, b+1
			}
			add(th, spool.UserStep, 0, a, b)
			continue
		case 'M':
			add(th, spool.Mode, flag(has("i"), spool.FlagInstrumented)|flag(has("w"), spool.FlagWarmup)|flag(has("r"),
				spool.FlagRecording)|flag(has("u"), spool.FlagUnphased), 0, 0)
			continue
		default:
			t.Fatalf("what is %s?", word)
		}
		add(th, o.kind, flags, o.a, 0)
		if opens {
			stacks[th] = append(stacks[th], o)
		} else {
			add(th, o.kind+1, o.end, o.a, 0)
		}
	}
	return marks, names
}

var short = strings.NewReplacer("forward", "fwd", "backward", "bwd", "optimizer", "opt", "between", ".", "zero_grad",
	"zg")

// show writes the phases of each step: "fwd bwd opt / . fwd bwd opt / ."; before the first step in brackets.
func show(r *Result) string {
	var out []string
	step := int64(-2)
	for i, s := range r.Spans {
		if s.Step != step {
			if step = s.Step; i > 0 {
				out = append(out, "/")
			}
		} else if p := &r.Spans[i-1]; p.Phase == s.Phase && p.Group == s.Group {
			continue // cut by a drain
		}
		name := short.Replace(s.Phase)
		if s.Microbatch > 0 {
			name += strconv.Itoa(int(s.Microbatch))
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}
