package paper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report/plates"
	"github.com/dpsight/dpsight/schemas"
)

// fullest returns the entry with the highest peak among the entries of the last group for whose views has is true, or
// nil if there is none. The document shows this entry's run where it has room for one run only.
func (b *builder) fullest(has func(*exhibits.View) bool) (highest *exhibits.Entry) {
	g := b.paper.Last()
	for i := range g.Entries {
		e := &g.Entries[i]
		v := b.model.Views[e.RunID]
		if v == nil || !has(v) || e.NormsOnly() || e.Status != schemas.StatusOK {
			continue
		}
		if highest == nil || *e.PeakBytes > *highest.PeakBytes {
			highest = e
		}
	}
	return highest
}

// shown is fullest, but prefers runs that the figures of steps and of modules can both show, so that these figures show
// the same run.
func (b *builder) shown(has func(*exhibits.View) bool) *exhibits.Entry {
	if e := b.fullest(func(v *exhibits.View) bool {
		return has(v) && v.Matrix != nil && v.Step != nil && len(v.Step.Points) > 0
	}); e != nil {
		return e
	}
	return b.fullest(has)
}

// stepPlates make, for each method, a figure of when and why its step peaks. The document includes the figure of
// one method.
func (b *builder) stepPlates() []Plate {
	return b.overEvents("step", func(v *exhibits.View) *exhibits.Step { return v.Step },
		"Allocated memory over one step{}, in the order of allocator events (not of time).",
		"the peak is in no recorded step")
}

// wholePlates make, for each method, a figure of its memory over all recorded steps, if the user wants such figures.
func (b *builder) wholePlates() []Plate {
	if b.config.Steps != AllSteps {
		if slices.Contains(b.config.Figures, "steps") {
			b.left = append(b.left, "figure steps: it needs steps: all in "+ConfigFile+", or --steps all")
		}
		return nil
	}
	return b.overEvents("steps", func(v *exhibits.View) *exhibits.Step { return v.Whole },
		"Allocated memory over all recorded steps{}, in the order of allocator events; numbers above are steps.",
		"fewer than two steps were recorded")
}

// overEvents makes a figure for each entry of the last group whose view has a stretch of events, and names the other
// entries with the reasons. without is the reason if only the stretch is missing.
func (b *builder) overEvents(name string, of func(*exhibits.View) *exhibits.Step, caption,
	without string) (out []Plate) {
	has := func(v *exhibits.View) bool {
		s := of(v)
		return s != nil && len(s.Points) > 0
	}
	shown := b.shown(has)
	g := b.paper.Last()
	missing := compare.NewGrouped()
	for i := range g.Entries {
		e := &g.Entries[i]
		v := b.model.Views[e.RunID]
		switch {
		case v != nil && has(v):
		case e.Status != schemas.StatusOK:
			missing.Add("the run ended early", b.labels[e.Key].Short)
		case e.Bare():
			missing.Add("a bare run records no allocations", b.labels[e.Key].Short)
		case v == nil:
			missing.Add("the peak is not broken down", b.labels[e.Key].Short)
		default:
			missing.Add(without, b.labels[e.Key].Short)
		}
		if v == nil || !has(v) {
			continue
		}
		s := of(v)
		p := Plate{Name: name + "-" + strings.ReplaceAll(fileWord(e.Key), "_", "-"), aside: e != shown}
		p.figure = drawnOver(e, s, &p)
		p.Finding = b.peaks(e, s)
		p.Caption = format(caption, b.where())
		out = append(out, p)
	}
	for _, line := range missing.Lines() {
		b.left = append(b.left, "figure "+name+" of "+line)
	}
	return out
}

// drawnOver returns the picture of a stretch of events, and adds the data behind it to p.
func drawnOver(e *exhibits.Entry, s *exhibits.Step, p *Plate) plates.Step {
	f := plates.Step{Cause: s.Cause(e), Run: len(s.Steps) > 0}
	header := []string{"event"}
	for _, c := range s.Categories {
		header = append(header, c.Category+"_bytes")
	}
	p.row(header...)
	for _, point := range s.Points {
		f.At = append(f.At, float64(point.FromEvent-s.FromEvent))
		row := []string{bytesText(point.HighEvent)}
		for _, n := range point.Bytes {
			row = append(row, bytesText(n))
		}
		p.row(row...)
	}
	f.At = append(f.At, float64(s.ToEvent-s.FromEvent)+1)
	for k, c := range s.Categories {
		band := plates.Band{Key: c.Category}
		for _, point := range s.Points {
			band.Values = append(band.Values, float64(point.Bytes[k]))
		}
		f.Bands = append(f.Bands, band)
	}
	for _, x := range s.Phases {
		name := phaseName(x.Phase).text()
		f.Phases = append(f.Phases, plates.Span{Key: phaseKey(x.Phase), Name: strings.ToLower(name),
			From: float64(x.From - s.FromEvent), To: float64(x.To - s.FromEvent)})
	}
	const mostSteps = 8 // the most steps that are named separately
	each := (len(s.Steps) + mostSteps - 1) / mostSteps
	for i := 0; i < len(s.Steps); i += each {
		last := min(i+each, len(s.Steps)) - 1
		name := s.Steps[i].Phase
		if last > i {
			name += "–" + s.Steps[last].Phase
		}
		f.Phases = append(f.Phases, plates.Span{Name: name, From: float64(s.Steps[i].From - s.FromEvent),
			To: float64(s.Steps[last].To - s.FromEvent)})
	}
	return f
}

// peaks returns the sentence that says when an entry's memory peaks.
func (b *builder) peaks(e *exhibits.Entry, s *exhibits.Step) Text {
	at := ""
	switch phase, step := s.RunPeakAt.Phase, s.RunPeakAt.Step; {
	case len(s.Steps) > 0 && step != nil:
		at = fmt.Sprintf(" in step %d", *step)
	case phase != nil:
		at = " in " + inside(*phase)
	}
	_, known := methods[e.Method()]
	switch {
	case e.NormsOnly():
		return plain("Computing only norms peaks" + at + ".")
	case e.Method() == "vanilla":
		return plain("Non-private training peaks" + at + ".")
	case known:
		return format("Training with {} peaks{}.", b.labels[e.Key].inside(), Text{{kind: words, text: at}})
	}
	return append(b.labels[e.Key].fullWords(), span{kind: words, text: " peak" + b.plural(e) + at + "."})
}

// inside returns a phase's name within a sentence: "backward", "the norm pass".
func inside(phase string) string {
	name := strings.ToLower(phaseName(phase).text())
	switch {
	case strings.HasSuffix(name, " pass"):
		return "the " + name
	case phase == schemas.PhaseOptimizer:
		return "the optimizer step"
	}
	return name
}

// rolesPlate makes the figure of the modules and operations that hold the highest peak.
func (b *builder) rolesPlate() []Plate {
	e := b.shown(func(v *exhibits.View) bool { return v.Matrix != nil })
	if e == nil {
		return nil
	}
	m := b.model.Views[e.RunID].Matrix
	p := Plate{Name: "roles", data: [][]string{{"role", "operation", "bytes"}}}
	for _, c := range m.Cells {
		p.row(c.Role, c.Op, bytesText(c.Bytes))
	}
	f := plates.Heatmap{Quantity: plates.Bytes, Most: largest(b.values(peakOf))}
	for _, op := range m.Columns {
		f.Columns = append(f.Columns, opName(op))
	}
	for _, role := range m.Rows {
		f.Rows = append(f.Rows, roleName(role))
		var cells []plates.Cell
		for _, op := range m.Columns {
			cell := plates.Cell{State: plates.NotRun}
			if n := m.Sum(role, op); n > 0 {
				cell = plates.Cell{Value: float64(n), State: state(e)}
			}
			cells = append(cells, cell)
		}
		f.Cells = append(f.Cells, cells)
	}
	p.figure = f
	p.Finding = plain("Which modules and operations hold the peak.")
	if largest := m.Largest(); largest.Role != "" && largest.Op != "" && largest.Op != grouping.NotAnActivation {
		share := 100 * float64(largest.Bytes) / float64(m.Peak)
		p.Finding = plain(fmt.Sprintf("%s in %s holds the largest part, %s\u202f%% of the peak.", opName(largest.Op),
			roleName(largest.Role), pretty(number(share, percent, false))))
	}
	p.Caption = format("Allocated memory ("+f.Unit()+") at the peak of {}{} by the module's role and, of activations, "+
		"the operation that keeps them for backward.", b.labels[e.Key].inside(), b.where())
	if slices.Contains(m.Rows, "loss") {
		p.Caption = append(p.Caption, span{kind: words, text: " Loss: operations in no module."})
	}
	return []Plate{p}
}

// roleName returns the name of a module's role on an axis.
func roleName(role string) string {
	switch role {
	case "":
		return "Rest"
	case "mlp":
		return "MLP"
	}
	return upper(strings.ReplaceAll(role, "_", " "))
}

// opName returns the name of one of autograd's operations in words: "Layer norm" for NativeLayerNormBackward0.
func opName(op string) string {
	switch {
	case op == "":
		return "Rest"
	case op == grouping.NotAnActivation:
		return upper(op)
	case strings.HasPrefix(op, "ScaledDotProduct"):
		return "SDPA"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(op, "Native"), "Backward")
	var words strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			words.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		words.WriteRune(r)
	}
	if words.Len() == 0 {
		return op
	}
	first, rest, more := strings.Cut(words.String(), " ")
	if known := operations[first]; known != "" {
		first = known
	}
	if more {
		return first + " " + rest
	}
	return first
}

// operations are the usual names of operations, or of parts of their names, where torch's differ.
var operations = map[string]string{"Bmm": "Batched matmul", "Nll": "NLL",
	"Gelu": "GELU", "Relu": "ReLU", "Silu": "SiLU", "Elu": "ELU"}

// ladderPlate makes the figure of all memory on the device, including memory outside tensors, at each allocator's peak.
func (b *builder) ladderPlate() []Plate {
	p := Plate{Name: "ladder", data: [][]string{{"method", "rung", "bytes"}}}
	f := plates.Ladder{Names: map[string]string{}}
	g := b.paper.Last()
	together, some := b.joinedRungs(g)
	joined := strings.NewReplacer("non_torch", "non-torch", "_", " ").Replace(strings.Join(together, ", "))
	f.Names[rungsTogether] = upper(joined)
	if some {
		f.Names[rungsTogether] = "Outside of torch's allocator"
	}
	for i := range g.Entries {
		e := &g.Entries[i]
		v := b.model.Views[e.RunID]
		if v == nil || len(v.Rungs) == 0 {
			continue
		}
		bar := b.bar(e, g)
		bar.Group = ""
		outside := plates.Segment{Key: rungsTogether}
		for _, r := range v.Rungs {
			p.row(bar.Label, r.Rung, bytesText(*r.Bytes))
			if first, _, _ := strings.Cut(r.Rung, "+"); slices.Contains(together, first) {
				outside.Value += float64(*r.Bytes)
				continue
			}
			bar.Segments = append(bar.Segments, plates.Segment{Key: r.Rung, Value: float64(*r.Bytes)})
		}
		if outside.Value > 0 {
			bar.Segments = append(bar.Segments, outside)
		}
		slices.SortStableFunc(bar.Segments, func(a, b plates.Segment) int {
			return slices.Index(plates.RungKeys, a.Key) - slices.Index(plates.RungKeys, b.Key)
		})
		f.Bars = append(f.Bars, bar)
	}
	if len(f.Bars) == 0 {
		return nil
	}
	p.figure = f
	p.Finding = plain("What uses the GPU's memory at each peak.")
	if e := b.fullestDevice(g); e != nil {
		u := b.memoryUnit()
		p.Finding = format("On the device, {} need"+b.plural(e)+" the most: torch's cache holds {}.",
			b.labels[e.Key].inside(), plain(pretty(number(float64(b.held(e, ladder.RungCached)), u, false))+"\u202f"+u.name))
	}
	p.Caption = format("Device memory in use{}, rounded, when torch's allocator peaks; outside torch: NVML's nearest "+
		"sample.", b.where())
	if some {
		p.Caption = append(p.Caption, span{kind: words, text: " Outside of torch's allocator: " + joined +
			"; not every run tells them apart."})
	}
	p.explainMark(slices.ContainsFunc(f.Bars, marked))
	return []Plate{p}
}

// held returns the bytes of some rungs of the device's memory at an entry's peak, or of all rungs.
func (b *builder) held(e *exhibits.Entry, rungs ...string) (sum int64) {
	for _, r := range b.model.Views[e.RunID].Rungs {
		if len(rungs) == 0 || slices.Contains(rungs, r.Rung) {
			sum += *r.Bytes
		}
	}
	return sum
}

// fullestDevice returns the entry that uses the most memory on the device, if another entry has the highest allocated
// memory and torch's cache makes the difference. In all other cases, fullestDevice returns nil.
func (b *builder) fullestDevice(g *exhibits.Group) *exhibits.Entry {
	var rivals []*exhibits.Entry
	for i := range g.Entries {
		if v := b.model.Views[g.Entries[i].RunID]; g.Entries[i].Rivals() && v != nil && len(v.Rungs) > 0 {
			rivals = append(rivals, &g.Entries[i])
		}
	}
	if len(rivals) < 2 {
		return nil
	}
	highest := func(rungs ...string) *exhibits.Entry {
		return slices.MaxFunc(rivals, func(x, y *exhibits.Entry) int {
			return cmp.Compare(b.held(x, rungs...), b.held(y, rungs...))
		})
	}
	most := highest()
	if most == highest(ladder.RungAllocated) || most != highest(ladder.RungAllocated, ladder.RungCached) {
		return nil
	}
	return most
}

// rungsTogether is the key of the rungs that are drawn as one.
const rungsTogether = "context"

// joinedRungs returns the rungs that some run of a group cannot separate, in the order of [plates.RungKeys]. The joined
// rungs are drawn as one, so that a colour means the same in every bar. some reports whether other runs of the group
// can separate some of these rungs.
func (b *builder) joinedRungs(g *exhibits.Group) (together []string, some bool) {
	var all []string
	for i := range g.Entries {
		v := b.model.Views[g.Entries[i].RunID]
		if v == nil {
			continue
		}
		for _, r := range v.Rungs {
			if strings.Contains(r.Rung, "+") {
				all = append(all, r.Rung)
			}
		}
	}
	for _, key := range plates.RungKeys {
		if slices.ContainsFunc(all, func(joined string) bool {
			return slices.Contains(strings.Split(joined, "+"), key)
		}) {
			together = append(together, key)
		}
	}
	some = slices.ContainsFunc(all, func(joined string) bool {
		return len(strings.Split(joined, "+")) < len(together)
	})
	return together, some
}

// largestPlate makes the figure of the largest batch by method and device.
func (b *builder) largestPlate() []Plate {
	p := Plate{Name: "largest", data: [][]string{{"method", "device", "batch", "open"}}}
	f := plates.Largest{Baseline: b.baseLabel()}
	several, devices := false, ""
	for _, key := range b.paper.Methods {
		for _, l := range b.model.Largest {
			if l.Key != key {
				continue
			}
			row := plates.LargestRow{Label: b.labels[key].drawn(), Device: l.Device, Batch: l.Batch}
			switch {
			case l.Batch == 0:
				row.State = plates.OOM
			case l.Open:
				row.State = plates.Bounded
			case l.Source == schemas.Predicted:
				row.State = plates.Predicted
			}
			several = several || devices != "" && devices != l.Device
			devices = l.Device
			f.Rows = append(f.Rows, row)
			p.row(row.Label, l.Device, floatText(l.Batch), fmt.Sprint(l.Open))
		}
	}
	if len(f.Rows) == 0 {
		return nil
	}
	if !several {
		for i := range f.Rows {
			f.Rows[i].Device = ""
		}
	}
	p.figure = f
	p.Finding = plain("The largest batch that fits.")
	p.Caption = plain("Largest batch that was tried and did not run out of memory")
	if !several {
		p.Caption = append(p.Caption, span{kind: words, text: ", on " + devices})
	}
	p.Caption = append(p.Caption, span{kind: words, text: "."})
	if slices.ContainsFunc(f.Rows, func(r plates.LargestRow) bool { return r.State == plates.Bounded }) {
		p.Caption = append(p.Caption, span{kind: words, text: " ≥: no larger one was refused."})
	}
	return []Plate{p}
}

// trendPlate makes the figure of the peaks of experiments over revisions of their code.
func (b *builder) trendPlate() []Plate {
	r := b.model.Trend
	if r == nil {
		return nil
	}
	p := Plate{Name: "trend", data: [][]string{{"experiment", "revision", "peak_bytes"}}}
	f := plates.Trend{Axis: "Peak memory", Quantity: plates.Bytes}
	for _, name := range r.Names {
		const most = 7 // digits of a revision; a plus may follow
		if len(name) > most {
			mark := strings.TrimLeft(name, "0123456789abcdef")
			name = name[:most] + mark
		}
		f.Revisions = append(f.Revisions, name)
	}
	for i, line := range r.Lines {
		label := cut(strings.ReplaceAll(line.Label, "_", " "), mostOfName)
		if l, known := b.labels[line.Label]; known {
			label = l.drawn()
		}
		s := plates.Series{Label: label, Look: len(b.paper.Methods) + i}
		if slices.Contains(b.paper.Methods, line.Label) {
			s.Look = b.look(line.Label)
		}
		for at, peak := range line.Peaks {
			if peak == nil {
				s.Values, s.States = append(s.Values, 0), append(s.States, plates.NotRun)
				continue
			}
			s.Values, s.States = append(s.Values, *peak), append(s.States, plates.Measured)
			p.row(label, r.Names[at], bytesText(int64(*peak)))
		}
		f.Series = append(f.Series, s)
	}
	p.figure = f
	p.Finding = plain("How the peak changed with the code.")
	p.Caption = plain("Peak allocated memory by revision, in the order of commits; numbers belong to the last.")
	return []Plate{p}
}
