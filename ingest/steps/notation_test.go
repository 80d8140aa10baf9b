package steps

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

// spans maps each word that stands for a span to the kind of the span's first mark. A span has a beginning and an end.
var spans = map[string]spool.Kind{
	"forward":       spool.ForwardBegin,
	"backward":      spool.BackwardBegin,
	"two_pass":      spool.DPBackwardBegin, // backward of an Opacus loss
	"update":        spool.OptimizerBegin,  // update:N is by optimizer number N
	"dp_step":       spool.DPStepBegin,     // step of an Opacus optimizer
	"zero_grad":     spool.ZeroGradBegin,
	"recompute":     spool.RecomputeBegin,
	"compiled":      spool.CompiledBegin, // a region that torch.compile compiled
	"scaler_step":   spool.ScalerBegin,
	"scaler_update": spool.ScalerBegin,
	"phase":         spool.PhaseBegin, // phase:NAME, which the script marked
	"stage":         spool.PhaseBegin, // stage:NAME of the set-up, which the agent marked
}

// instants maps each word that stands for a single mark to the mark's kind.
var instants = map[string]spool.Kind{
	"updated":             spool.Updated, // updated:N is the only mark of an update in a step without phases
	"updated_in_backward": spool.Updated,
	"user_step":           spool.UserStep, // user_step or user_step:SAMPLES,TOKENS is a call of dpsight.step()
	"mode":                spool.Mode,     // says how the next step is recorded
	"engine":              spool.Engine,   // the first mark of a thread of autograd's
	"oom":                 spool.OOM,
	"exception":           spool.Exception,
	"exit":                spool.Exit,
}

// usual maps a word to the flags that its mark has without a qualifier.
var usual = map[string]uint8{
	"forward":             spool.FlagGrad | spool.FlagTraining,
	"backward":            spool.FlagAccumulate,
	"compiled":            spool.FlagGrad,
	"updated":             spool.FlagEnds,
	"updated_in_backward": spool.FlagInBackward,
	"stage":               spool.FlagSetup,
}

// A qualifier follows a word and a slash. The qualifier adds flags to the word's usual flags, or removes flags.
var qualifiers = map[string]struct{ adds, takes uint8 }{
	"no_grad":       {0, spool.FlagGrad},
	"eval":          {0, spool.FlagTraining},
	"in_backward":   {spool.FlagInBackward, 0},
	"keep_graph":    {spool.FlagKeepGraph, 0},
	"create_graph":  {spool.FlagCreateGraph, 0},
	"no_accumulate": {0, spool.FlagAccumulate},
	"nested":        {spool.FlagNestedRun, 0},
	"functorch":     {spool.FlagFunctorch, 0},
	"instrumented":  {spool.FlagInstrumented, 0},
	"warmup":        {spool.FlagWarmup, 0},
	"recording":     {spool.FlagRecording, 0},
	"unphased":      {spool.FlagUnphased, 0},
	"initializes":   {spool.FlagInitializes, 0},
	"detached":      {}, // the forward's output needs no gradient
	"raised":        {}, // an exception ended the update
}

const (
	markNS  = 10 // the time from one mark to the next
	drainNS = 1000
)

// A notation turns a text of words into marks. A span is written NAME if it is empty, and NAME{ ... } otherwise. If the
// process died inside the span, the text has no }. Qualifiers follow a slash, as in forward/no_grad/eval. A word after
// "thread1:" is a mark of thread 1. The word drain stands for two marks with a pause between them.
type notation struct {
	*testing.T
	now   int64
	marks []spool.Mark
	names map[uint32]string
	open  map[uint16][]span // the open spans of each thread, the innermost last
}

type span struct {
	kind     spool.Kind
	begin    uint8 // flags of the first mark
	end      uint8
	argument uint64
}

// parse turns a text into marks. parse returns the marks and the names to which the marks refer by id.
func parse(t *testing.T, text string) ([]spool.Mark, map[uint32]string) {
	t.Helper()
	n := &notation{T: t, now: 1000, names: map[uint32]string{}, open: map[uint16][]span{}}
	if text != "" {
		n.mark(0, spool.Start, 0, 0, 0)
	}
	for _, word := range strings.Fields(text) {
		n.word(word)
	}
	return n.marks, n.names
}

func (n *notation) mark(thread uint16, kind spool.Kind, flags uint8, a, b uint64) {
	n.now += markNS
	n.marks = append(n.marks, spool.Mark{K: uint32(len(n.marks) + 1), Thread: thread, Kind: kind, Flags: flags,
		TimeNS: n.now, A: a, B: b})
}

func (n *notation) word(text string) {
	thread, word := uint16(0), text
	if on, rest, ok := strings.Cut(text, ":"); ok && strings.HasPrefix(on, "thread") {
		thread, word = uint16(n.number(strings.TrimPrefix(on, "thread"))), rest
	}
	body := strings.TrimSuffix(word, "{")
	parts := strings.Split(body, "/")
	name, argument, _ := strings.Cut(parts[0], ":")
	switch {
	case word == "}":
		n.closes(thread)
	case word == "drain":
		n.mark(thread, spool.DrainBegin, 0, 0, 0)
		n.now += drainNS - 2*markNS
		n.mark(thread, spool.DrainEnd, 0, 0, 0)
	case instants[name] != 0:
		a, b := n.operands(name, argument)
		n.mark(thread, instants[name], n.flags(name, parts[1:]), a, b)
	case spans[name] != 0:
		s := span{kind: spans[name], begin: n.flags(name, parts[1:])}
		s.end = s.ends(name, parts[1:])
		s.argument, _ = n.operands(name, argument)
		n.mark(thread, s.kind, s.begin, s.argument, 0)
		n.open[thread] = append(n.open[thread], s)
		if body == word {
			n.closes(thread)
		}
	default:
		n.Fatalf("what is %s?", text)
	}
}

func (n *notation) closes(thread uint16) {
	open := n.open[thread]
	if len(open) == 0 {
		n.Fatalf("a } on thread %d closes nothing", thread)
	}
	s := open[len(open)-1]
	n.open[thread] = open[:len(open)-1]
	n.mark(thread, s.kind+1, s.end, s.argument, 0)
}

func (n *notation) flags(name string, words []string) uint8 {
	flags := usual[name]
	for _, w := range words {
		q, known := qualifiers[w]
		if !known {
			n.Fatalf("%s/%s: no such qualifier", name, w)
		}
		flags = flags&^q.takes | q.adds
	}
	return flags
}

// ends returns the flags of a span's last mark.
func (s span) ends(name string, words []string) uint8 {
	has := func(word string) bool { return slices.Contains(words, word) }
	switch {
	case name == "forward" && !has("detached") && !has("no_grad"):
		return s.begin | spool.FlagDifferentiable
	case name == "update" && has("raised"):
		return s.begin | spool.FlagRepaired
	case name == "forward", name == "update", name == "phase", name == "stage":
		return s.begin
	}
	return 0
}

// operands returns the two operands of a word's mark.
func (n *notation) operands(name, argument string) (a, b uint64) {
	switch name {
	case "update", "updated", "updated_in_backward":
		return n.number(argument), 0
	case "scaler_update":
		return 1, 0
	case "phase", "stage":
		for id, known := range n.names {
			if known == argument {
				return uint64(id), 0
			}
		}
		id := uint32(len(n.names) + 1)
		n.names[id] = argument
		return uint64(id), 0
	case "user_step":
		if samples, tokens, ok := strings.Cut(argument, ","); ok {
			// the script did not state this number if the operand is 0
			return n.number(samples) + 1, n.number(tokens) + 1
		}
	}
	return 0, 0
}

func (n *notation) number(text string) uint64 {
	x, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		n.Fatal(err)
	}
	return x
}

// show returns the phases of all steps as text, with a slash between steps: "between / forward backward between
// optimizer / between". The number after a phase is its microbatch. Microbatch 0 has no number.
func show(r *Result) string {
	var out []string
	step := int64(-2)
	for i, s := range r.Spans {
		if s.Step != step {
			if step = s.Step; i > 0 {
				out = append(out, "/")
			}
		} else if p := &r.Spans[i-1]; p.Phase == s.Phase && p.Group == s.Group {
			continue // a drain divided the phase
		}
		name := s.Phase
		if s.Microbatch > 0 {
			name += strconv.Itoa(int(s.Microbatch))
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}
