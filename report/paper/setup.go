package paper

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// facts collects the different values of one setting over several runs, in the order of the runs.
type facts []string

func (f *facts) add(value string) {
	if value != "" && !slices.Contains(*f, value) {
		*f = append(*f, value)
	}
}

// text returns "a", "a and b", or "".
func (f facts) text() string { return joinWords(f) }

// gather collects one fact of all runs.
func (b *builder) gather(of func(*schemas.Manifest) string) facts {
	var f facts
	for _, m := range b.model.Manifests {
		f.add(of(m))
	}
	return f
}

// param returns the values of a parameter over all runs.
func (b *builder) param(name string) facts {
	return b.gather(func(m *schemas.Manifest) string {
		switch v := m.Params[name].(type) {
		case nil:
			return ""
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		default:
			return fmt.Sprint(v)
		}
	})
}

func environment(of func(*schemas.Environment) string) func(*schemas.Manifest) string {
	return func(m *schemas.Manifest) string {
		if m.Environment == nil {
			return ""
		}
		return of(m.Environment)
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// setup returns setup.tex.
func (b *builder) setup() string {
	var t strings.Builder
	t.WriteString("% Setup: what a reader needs to repeat the runs. Written by dpsight from the recordings.\n")
	for _, part := range []struct {
		title string
		text  Text
	}{{"Hardware and software", b.hardware()}, {"Model", b.trained()}, {"Privacy", b.privacy()},
		{"Measurement", b.measurement()}} {
		if len(part.text) > 0 {
			fmt.Fprintf(&t, "\\textbf{%s.} %s\n", part.title, part.text.tex())
		}
	}
	t.WriteString("% The runs were made by these commands:\n")
	var commands facts
	for _, m := range b.model.Manifests {
		commands.add(commandLine(m.Command))
	}
	for _, c := range commands {
		t.WriteString("%   " + c + "\n")
	}
	t.WriteString("% These files were made by:\n%   " + commandLine(b.model.Command) + "\n")
	return t.String()
}

// kernels are the names of torch's attention kernels.
var kernels = map[string]string{"flash": "flash", "efficient": "memory-efficient", "math": "math", "cudnn": "cuDNN"}

// hardware describes the devices and software of the runs.
func (b *builder) hardware() Text {
	gpus := b.gather(func(m *schemas.Manifest) string {
		if m.Source == schemas.Predicted || len(m.GPUs) == 0 {
			return ""
		}
		text := "One " + m.GPUs[0].Name
		if len(m.GPUs) > 1 {
			text = strconv.Itoa(len(m.GPUs)) + " × " + m.GPUs[0].Name
		}
		if n := m.GPUs[0].TotalBytes; n > 0 {
			text += " (" + number(float64(n), unit{name: "GiB", size: 1 << 30}, false) + "\u202fGiB)"
		}
		return text
	})
	var first []string
	if len(gpus) > 0 {
		first = append(first, gpus.text())
	}
	profiles := b.gather(func(m *schemas.Manifest) string { return orEmpty(m.Profile) })
	if len(profiles) > 0 {
		first = append(first, "predictions for "+profiles.text()+" without a GPU")
	}
	if driver := b.gather(func(m *schemas.Manifest) string { return orEmpty(m.Driver) }); len(driver) > 0 {
		first = append(first, "driver "+driver.text())
	}
	text := plain(upper(strings.Join(first, ", ")))
	torch := b.gather(environment(func(e *schemas.Environment) string {
		version, _, _ := strings.Cut(e.Torch, "+")
		if version == "" {
			return ""
		}
		version = "PyTorch " + version
		if e.CUDA != nil {
			version += " with CUDA " + *e.CUDA
		}
		return version
	}))
	text = append(text, plain(sentence("", torch.text()))...)
	if opacus := b.gather(environment(func(e *schemas.Environment) string { return orEmpty(e.Opacus) })); len(opacus) > 0 {
		text = append(text, span{kind: words, text: ", Opacus " + opacus.text()},
			span{kind: cite, text: "yousefpour2021opacus"})
	}
	if len(text) > 0 {
		text = append(text, span{kind: words, text: "."})
	}
	tf32 := b.gather(environment(func(e *schemas.Environment) string {
		switch {
		case e.TF32Matmul == nil:
			return ""
		case *e.TF32Matmul:
			return "on"
		}
		return "off"
	}))
	attention := b.gather(environment(func(e *schemas.Environment) string {
		var names []string
		for _, key := range e.SDPABackends {
			names = append(names, cmp.Or(kernels[key], strings.ReplaceAll(key, "_", " ")))
		}
		return strings.Join(names, ", ")
	}))
	var more []string
	if len(tf32) > 0 {
		more = append(more, "TF32 for matrix products "+tf32.text())
	}
	if len(attention) > 0 {
		more = append(more, "attention kernels allowed: "+strings.Join(attention, "; or "))
	}
	if len(more) > 0 {
		text = append(text, span{kind: words, text: " " + strings.Join(more, "; ") + "."})
	}
	revisions := b.gather(func(m *schemas.Manifest) string {
		if m.Git == nil || m.Git.Revision == "" {
			return ""
		}
		text := m.Git.Revision[:min(12, len(m.Git.Revision))]
		if m.Git.Dirty {
			text += " and changes"
		}
		return text
	})
	if len(revisions) > 0 {
		text = append(text, span{kind: words, text: " Code: commit "}, span{kind: code, text: revisions.text()},
			span{kind: words, text: "."})
	}
	return text
}

// sentence joins before and text with "; ", or returns "" if text is empty.
func sentence(before, text string) string {
	if text == "" {
		return ""
	}
	return before + "; " + text
}

// optimizers has the names and references of optimizers.
var optimizers = map[string]struct {
	name  string
	cites []string
}{
	"adamw": {"AdamW", []string{"kingma2015adam", "loshchilov2019decoupled"}},
	"adam":  {"Adam", []string{"kingma2015adam"}},
	"sgd":   {"SGD", nil},
}

// trained describes what was trained, by the parameters that have words.
func (b *builder) trained() Text {
	param := func(name, before, after string) Text {
		v := b.param(name)
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			if name != "seed" {
				v[i] = grouped(v[i])
			}
		}
		return plain(before + strings.ReplaceAll(v.text(), "_", " ") + after)
	}
	swept := func(name string) bool { return slices.Contains(b.paper.Swept, name) }
	// defined is param with the letter that tables and figures use if the parameter varies.
	defined := func(name, words string) Text {
		if s := symbols[name]; s != "" && swept(name) {
			return join(parse(words+" *"+s+"*\u202f=\u202f"), param(name, "", ""))
		}
		return param(name, words+" ", "")
	}
	var parts []Text
	add := func(t Text) {
		if len(t) > 0 {
			parts = append(parts, t)
		}
	}
	subject := param("model", "", "")
	if scripts := b.scripts(); len(subject) == 0 && len(scripts) > 0 {
		subject = scripts
	}
	if len(b.param("num_layers")) == 0 {
		add(param("preset", "preset ", ""))
	}
	if swept("num_layers") {
		add(defined("num_layers", "number of layers"))
	} else {
		add(param("num_layers", "", " layers"))
	}
	add(defined("hidden_dim", "hidden size"))
	add(param("num_heads", "", " heads"))
	add(param("vocab_size", "vocabulary ", ""))
	add(b.parameters())
	add(defined("rank", "rank"))
	model := parts
	parts = nil
	switch batch, length := b.param("batch_size"), b.param("seq_len"); {
	case swept("batch_size") || swept("seq_len"):
		add(defined("batch_size", "batch size"))
		add(defined("seq_len", "sequence length"))
	case len(batch) > 0 && len(length) > 0:
		add(plain(sequences(batch, length) + " a step"))
	default:
		add(param("batch_size", "batch size ", ""))
		add(param("seq_len", "sequences of ", " tokens"))
	}
	if swept("physical_batch_size") {
		add(defined("physical_batch_size", "physical batch size"))
	}
	add(param("precision", "", ""))
	for _, name := range b.param("optimizer") {
		o, known := optimizers[name]
		if !known {
			add(plain(name))
			continue
		}
		text := plain(o.name)
		if len(o.cites) > 0 {
			text = append(text, span{kind: cite, text: strings.Join(o.cites, ",")})
		}
		add(text)
	}
	if v := b.param("checkpointing"); len(v) == 1 {
		add(plain(map[string]string{"true": "activations checkpointed", "false": "no checkpointing"}[v[0]]))
	}
	add(param("seed", "seed ", ""))
	if len(model)+len(parts) == 0 {
		seeds := b.gather(environment(func(e *schemas.Environment) string {
			if e.Seed == nil {
				return ""
			}
			return strconv.FormatInt(*e.Seed, 10)
		}))
		if len(seeds) == 0 {
			return nil
		}
		add(plain("torch's initial seed " + seeds.text()))
	}
	t := subject
	if len(model) > 0 {
		if len(t) > 0 {
			t = append(t, span{kind: words, text: ": "})
		}
		t = append(t, parted(model, ", ")...)
	}
	if len(parts) > 0 {
		if len(t) > 0 {
			t = append(t, span{kind: words, text: "; "})
		}
		t = append(t, parted(parts, "; ")...)
	}
	if t[0].kind == words {
		t[0].text = upper(t[0].text)
	}
	return append(t, span{kind: words, text: "."})
}

// parted joins texts with a separator.
func parted(texts []Text, mark string) (t Text) {
	for i, text := range texts {
		if i > 0 {
			t = append(t, span{kind: words, text: mark})
		}
		t = append(t, text...)
	}
	return t
}

// sequences states the sizes of the batches as papers do.
func sequences(batch, length facts) string {
	either := func(f facts) string {
		out := make([]string, len(f))
		for i := range f {
			out[i] = grouped(f[i])
		}
		return strings.ReplaceAll(joinWords(out), " and ", " or ")
	}
	if len(batch) == 1 && batch[0] == "1" {
		return "one sequence of " + either(length) + " tokens"
	}
	return either(batch) + " sequences of " + either(length) + " tokens"
}

// scripts names the scripts of the runs, and is empty if no command names a script.
func (b *builder) scripts() Text {
	scripts := b.gather(func(m *schemas.Manifest) string {
		for _, word := range m.Command {
			if strings.HasSuffix(word, ".py") {
				return path.Base(strings.ReplaceAll(word, `\`, "/"))
			}
		}
		return ""
	})
	var texts []Text
	for _, name := range scripts {
		texts = append(texts, Text{{kind: code, text: name}})
	}
	return list(texts)
}

// parameters states the numbers of the models' parameters if each has four bytes, or else their bytes. The text is
// empty if no peak is broken down, or if the runs' models have more than three sizes. The allocator rounds each
// tensor's size up, by far less than the last printed digit.
func (b *builder) parameters() Text {
	var sizes facts
	precision := b.param("precision")
	for _, g := range b.paper.Groups {
		for i := range g.Entries {
			e := &g.Entries[i]
			if e.Status != schemas.StatusOK || !e.BrokenDown() {
				continue
			}
			bytes := float64(e.Main().Category(schemas.Parameters).Bytes)
			switch {
			case bytes == 0:
				return nil
			case len(precision) == 1 && precision[0] == "fp32":
				sizes.add(counted(bytes / 4))
			default:
				u := chosen("", []float64{bytes}, gib, mib)
				sizes.add(pretty(number(bytes, u, false)) + "\u202f" + u.name)
			}
		}
	}
	const most = 3
	switch {
	case len(sizes) == 0 || len(sizes) > most:
		return nil
	case len(precision) == 1 && precision[0] == "fp32":
		return plain(sizes.text() + " parameters")
	}
	return plain("parameters of " + sizes.text())
}

// counted returns a large count as papers do: "1.2 B".
func counted(n float64) string {
	name, digits := "", 0
	for _, of := range []struct {
		size float64
		name string
	}{{1e9, "\u202fB"}, {1e6, "\u202fM"}} {
		if n >= of.size {
			n, name = n/of.size, of.name
			break
		}
	}
	if n < 10 && name != "" {
		digits = 1
	}
	return pretty(strconv.FormatFloat(n, 'f', digits, 64)) + name
}

// accountants has the references of privacy accountants.
var accountants = map[string]string{"prv": "gopi2021numerical", "rdp": "mironov2017renyi"}

// privacy states what the private runs guarantee, if that was recorded.
func (b *builder) privacy() Text {
	private := func(of func(*schemas.Privacy) string) facts {
		return b.gather(func(m *schemas.Manifest) string {
			if m.Privacy == nil {
				return ""
			}
			return of(m.Privacy)
		})
	}
	float := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', 4, 64)
	}
	var parts []Text
	if v := private(func(p *schemas.Privacy) string { return float(p.NoiseMultiplier) }); len(v) > 0 {
		parts = append(parts, plain("noise multiplier σ\u202f=\u202f"+v.text()))
	}
	if v := private(func(p *schemas.Privacy) string { return float(p.MaxGradNorm) }); len(v) > 0 {
		parts = append(parts, parse("clipping norm *C*\u202f=\u202f"+v.text()))
	}
	if v := private(func(p *schemas.Privacy) string { return orEmpty(p.Clipping) }); len(v) > 0 {
		parts = append(parts, plain(strings.ReplaceAll(v.text(), "_", "-")+" clipping"))
	}
	poisson := false
	sampling := private(func(p *schemas.Privacy) string {
		switch {
		case p.Poisson == nil:
			return ""
		case *p.Poisson:
			poisson = true
			return "Poisson sampling"
		}
		return "fixed batches (no Poisson sampling)"
	})
	if len(sampling) > 0 {
		parts = append(parts, plain(sampling.text()))
	}
	reached := private(func(p *schemas.Privacy) string {
		if p.Epsilon == nil || p.Delta == nil {
			return ""
		}
		return "ε\u202f=\u202f" + float(p.Epsilon) + " at δ\u202f=\u202f" + float(p.Delta)
	})
	// Without Poisson sampling or a reached ε, the sample rate only reflects the number of batches.
	if v := private(func(p *schemas.Privacy) string { return float(p.SampleRate) }); len(v) > 0 &&
		(poisson || len(reached) > 0) {
		parts = append(parts, parse("sampling rate *q*\u202f=\u202f"+v.text()))
	}
	if len(parts) == 0 {
		return nil
	}
	t := append(parted(parts, ", "), span{kind: words, text: "."})
	t[0].text = upper(t[0].text)
	if len(reached) == 0 {
		return append(t, span{kind: words, text: " δ was not set, so no ε is reported: the runs measure cost, not privacy."})
	}
	t = append(t, span{kind: words, text: " Reached: " + reached.text()})
	for _, a := range private(func(p *schemas.Privacy) string { return orEmpty(p.Accountant) }) {
		t = append(t, span{kind: words, text: ", by the accountant " + a})
		if key := accountants[a]; key != "" {
			t = append(t, span{kind: cite, text: key})
		}
	}
	return append(t, span{kind: words, text: "."})
}

// measurement says how the figures were measured.
func (b *builder) measurement() Text {
	t := parse("Peaks are `max_memory_allocated`.")
	if len(exhibits.ComponentsOf(b.paper.Last()).Entries) > 0 {
		t = parse("Peaks are `max_memory_allocated`, broken down to the byte.")
	}
	steps, repeats, clocks := facts{}, facts{}, facts{}
	for _, g := range b.paper.Groups {
		for _, e := range g.Entries {
			if v := e.StepMS; v != nil {
				clocks.add(v.Clock)
				if v.Over == timing.OverRepeats {
					repeats.add(strconv.Itoa(v.N))
				} else {
					steps.add(strconv.Itoa(v.N))
				}
			}
		}
	}
	clock := map[string]string{timing.ClockGPU: "GPU times", timing.ClockWall: "Wall times"}
	begin := "Times"
	if len(clocks) == 1 {
		begin = clock[clocks[0]]
	}
	many := func(f facts) string {
		if len(f) > 3 {
			return "several"
		}
		return strings.ReplaceAll(f.text(), " and ", " or ")
	}
	switch {
	case len(repeats) > 0:
		t = append(t, span{kind: words, text: " " + begin + " are medians of " + many(repeats) + " runs, each the median " +
			"of its timed steps without instrumentation after warm-up."})
	case len(steps) > 0:
		t = append(t, span{kind: words, text: " " + begin + " are medians of " + many(steps) + " steps without " +
			"instrumentation after warm-up."})
	}
	if u := b.memoryUnit(); u.name == gib.name {
		return append(t, span{kind: words, text: " GiB is 2³⁰ bytes."})
	}
	return append(t, span{kind: words, text: " MiB is 2²⁰ bytes."})
}

// setupReferences returns the references for the set-up.
func setupReferences(b *builder) (keys []string) {
	for _, t := range []Text{b.hardware(), b.trained(), b.privacy()} {
		for _, s := range t {
			if s.kind == cite {
				keys = append(keys, strings.Split(s.text, ",")...)
			}
		}
	}
	return keys
}
