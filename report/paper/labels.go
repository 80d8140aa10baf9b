package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// A Label names a method in a paper.
type Label struct {
	Full  string // used in the main table
	Short string // used in figures and other tables
	Head  string // Short in two lines, separated by "|", for narrow columns
	Cite  string // key of the method's reference
	plain string // replaces the label where no font has its characters
}

// methods has the labels of the methods that dpsight knows.
var methods = map[string]Label{
	"vanilla":     {Full: "Non-private", Short: "Non-private", Head: "Non-|private"},
	"loop":        {Full: "Per-example loop", Short: "Per-example loop", Head: "Example|loop"},
	"dpsgd":       {Full: "Per-sample gradients", Short: "Per-sample", Head: "Per-|sample", Cite: "yousefpour2021opacus"},
	"functorch":   {Full: "Per-sample (functorch)", Short: "Functorch", Head: "Func-|torch", Cite: "yousefpour2021opacus"},
	"fgc":         {Full: "Fast gradient clipping", Short: "Fast", Head: "Fast", Cite: "lee2021scaling"},
	"ghost":       {Full: "Ghost clipping", Short: "Ghost", Head: "Ghost", Cite: "li2022large"},
	"mixed_ghost": {Full: "Mixed ghost clipping", Short: "Mixed ghost", Head: "Mixed|ghost", Cite: "bu2022scalable"},
	"flash":       {Full: "Tiled norms", Short: "Tiled", Head: "Tiled"},
	"bk":          {Full: "Book-keeping", Short: "Book-keeping", Head: "Book-|keeping", Cite: "bu2023differentially"},
	"flash_bk":    {Full: "Tiled book-keeping", Short: "Tiled book-keeping", Head: "Tiled|BK"},
	"norm_only":   {Full: "Norms only, not private", Short: "Norms only", Head: "Norms|only"},
}

// Longest names of entries without a label, in characters.
const (
	mostOfName = 24
	mostOfHead = 11
)

// labels returns the labels of all entries of a paper, by key. A label in the configuration replaces the default
// one.
func labels(p *exhibits.Paper, c *Config) map[string]Label {
	out := map[string]Label{}
	taken := map[string]bool{}
	settings := settingLabels(p)
	for i, key := range p.Methods {
		l, known := methods[key]
		if e := p.Find(key); !known && e != nil && len(e.Variant) > 0 {
			l, known = variant(e)
		}
		if !known {
			l, known = settings[key]
		}
		if !known {
			name := strings.ReplaceAll(strings.ReplaceAll(key, "(revision ", "("), "_", " ")
			name = cut(name, mostOfName)
			l = Label{Full: name, Short: name, Head: twoLines(name)}
		}
		if full := c.Labels[key]; full != "" {
			l.Full = full
			if c.Short[key] == "" && !known {
				l.Short, l.Head = full, twoLines(full)
			}
		}
		if short := c.Short[key]; short != "" {
			l.Short, l.Head = short, twoLines(short)
		}
		if head := c.Heads[key]; head != "" {
			l.Head = head
		}
		if reference, ok := c.Cite[key]; ok {
			l.Cite = reference
		}
		for _, of := range []*string{&l.Full, &l.Short} {
			*of = unique(*of, taken)
		}
		if slices.ContainsFunc(p.Methods[:slices.Index(p.Methods, key)], func(k string) bool {
			return out[k].Head == l.Head
		}) {
			l.Head = twoLines(l.Short)
		}
		l.plain = key
		if hasCJK(key) {
			l.plain = fmt.Sprintf("run %d", i+1)
		}
		out[key] = l
		taken[l.Full], taken[l.Short] = true, true
	}
	return out
}

// variant returns the label of an entry whose known method has several entries.
func variant(e *exhibits.Entry) (l Label, known bool) {
	l, known = methods[e.Method()]
	which := ", " + cut(strings.ReplaceAll(strings.Join(e.Variant, ", "), "_", " "), mostOfHead)
	l.Full += which
	l.Short += which
	l.Head = twoLines(l.Short)
	return l, known
}

// settingLabels returns labels for experiments without a method, if their names only state the parameters that differ:
// "Rank 4" for rank4.
func settingLabels(p *exhibits.Paper) map[string]Label {
	var entries []*exhibits.Entry
	var ids []identity.Identity
	var all []int
	for g := range p.Groups {
		for i := range p.Groups[g].Entries {
			if e := &p.Groups[g].Entries[i]; e.Method() == "" {
				all = append(all, len(ids))
				entries, ids = append(entries, e), append(ids, e.Identity)
			}
		}
	}
	if len(entries) < 2 {
		return nil
	}
	out := map[string]Label{}
	params := identity.TellingParams(ids, all)
	for _, e := range entries {
		rest := strings.TrimSuffix(e.Name, "-bare")
		var values []string
		for _, name := range params {
			value := e.Fact(name)
			if value == "" {
				continue
			}
			if !strings.Contains(rest, name) || !strings.Contains(rest, value) {
				return nil
			}
			rest = strings.Replace(strings.Replace(rest, name, "", 1), value, "", 1)
			values = append(values, strings.ReplaceAll(name, "_", " ")+" "+grouped(value))
		}
		if len(values) == 0 || strings.Trim(rest, "-_=., ") != "" {
			return nil
		}
		label := cut(upper(strings.Join(values, ", ")), mostOfName)
		out[e.Key] = Label{Full: label, Short: label, Head: twoLines(label)}
	}
	return out
}

// unique appends a number to a label that is already taken.
func unique(label string, taken map[string]bool) string {
	for n := 2; taken[label]; n++ {
		base, _, _ := strings.Cut(label, " (#")
		label = fmt.Sprintf("%s (#%d)", base, n)
	}
	return label
}

// cut shortens a name by leaving out its middle.
func cut(name string, most int) string {
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	head := most / 2
	return strings.TrimSpace(string(runes[:head])) + "…" + strings.TrimSpace(string(runes[len(runes)-(most-1-head):]))
}

// twoLines divides a label at the place where its halves are most equal in length.
func twoLines(label string) string {
	if len([]rune(label)) <= mostOfHead-3 {
		return label
	}
	best, difference := -1, len(label)
	for i, r := range label {
		if r != ' ' && r != '-' {
			continue
		}
		if d := max(2*i-len(label), len(label)-2*i); d < difference {
			best, difference = i, d
		}
	}
	if best < 0 {
		return cut(label, mostOfHead)
	}
	first, second := label[:best], label[best+1:]
	if label[best] == '-' {
		first = label[:best+1]
	}
	return cut(first, mostOfHead) + "|" + cut(second, mostOfHead)
}

// said returns one form of a label as text.
func (l Label) said(form string) Text {
	if hasCJK(form) {
		return Text{{kind: foreign, text: units.OneLine(form), alt: l.plain}}
	}
	return plain(form)
}

// full returns the label for the main table.
func (l Label) full() Text {
	t := l.said(l.Full)
	if l.Cite != "" {
		t = append(t, span{kind: cite, text: l.Cite})
	}
	return t
}

func (l Label) short() Text { return l.said(l.Short) }

// categoryNames are the names of components in a paper.
var categoryNames = map[schemas.Category]string{
	schemas.Parameters: "Parameters", schemas.Buffers: "Buffers", schemas.OptimizerState: "Optimizer state",
	schemas.SummedGradients: "Summed gradients", schemas.Noise: "Noise", schemas.Gradients: "Gradients",
	schemas.PerSampleGradients: "Per-sample gradients", schemas.NormSamples: "Norms of samples",
	schemas.Activations: "Activations", schemas.HookActivations: "Held by DP hooks only",
	schemas.StoredBackprops: "Stored backprops", schemas.ClipTemporaries: "Clipping temporaries",
	schemas.Outputs: "Outputs", schemas.Inputs: "Inputs", schemas.AutocastCache: "Autocast cache",
	schemas.Workspace: "Workspace", schemas.ActivationGradients: "Activation gradients",
	schemas.ForwardTemporaries: "Forward temporaries", schemas.OptimizerTemporaries: "Optimizer temporaries",
	schemas.Script: "Script's own", schemas.Slack: "Slack", schemas.Untraced: "Untraced", schemas.Other: "Other",
}

// phaseNames are the names of phases in a paper.
var phaseNames = map[string]string{
	schemas.PhaseForward: "Forward", schemas.PhaseBackward: "Backward", schemas.PhaseBackwardNorm: "norm pass",
	schemas.PhaseBackwardGrad: "gradient pass", schemas.PhaseClip: "Clip", schemas.PhaseAccumulate: "Accumulate",
	schemas.PhaseNoise: "Noise", schemas.PhaseOptimizer: "Optimizer", schemas.PhaseZeroGrad: "Zero gradients",
	schemas.PhaseBetween: "Between phases", schemas.PhaseRecompute: "Recompute",
}

func phaseName(phase string) Text {
	if name := phaseNames[phase]; name != "" {
		return plain(name)
	}
	return plain(cut(strings.ReplaceAll(phase, "_", " "), mostOfName))
}

// symbols are the letters that papers use for some parameters.
var symbols = map[string]string{"batch_size": "B", "seq_len": "T", "physical_batch_size": "b", "rank": "r",
	"num_layers": "L", "hidden_dim": "d"}

// parameter returns a parameter with its value: "T = 512" or "precision bf16".
func parameter(name, value string) Text {
	if name == exhibits.GPU {
		return plain(strings.TrimPrefix(strings.TrimPrefix(value, "NVIDIA "), "GeForce "))
	}
	if name != "seed" {
		value = grouped(value)
	}
	if s := symbols[name]; s != "" {
		return Text{{kind: symbol, text: s}, {kind: words, text: "\u202f=\u202f" + value}}
	}
	return plain(strings.ReplaceAll(name, "_", " ") + " " + value)
}

// place returns the values of a group's swept parameters.
func place(p *exhibits.Paper, g *exhibits.Group) Text {
	var parts []Text
	for i, name := range p.Swept {
		if g.Values[i] != "" {
			parts = append(parts, parameter(name, g.Values[i]))
		}
	}
	var t Text
	for i, part := range parts {
		if i > 0 {
			t = append(t, span{kind: words, text: ", "})
		}
		t = append(t, part...)
	}
	return t
}
