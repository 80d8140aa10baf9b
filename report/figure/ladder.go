package figure

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A LadderRow is one GPU of one run at two moments. A GPU that several ranks share has a row for each of their
// allocators.
type LadderRow struct {
	Label string // label, which is unique in the picture
	Badge string
	// Device is the moment of the device's peak, and nil in the rows of the GPU's other allocators. Allocator is the
	// moment of an allocator's peak, and nil for a run without events.
	Device, Allocator *ladder.Moment
}

// A DeviceLadder is the picture named ladder, which stacks all memory in use on a GPU, from the categories of allocated
// bytes to other processes, at the device's peak and at the allocator's peak. Allocated bytes are first, so that
// allocated, reserved and the whole each end at their sizes on the axis.
type DeviceLadder struct {
	Rows  []LadderRow
	Notes []string
}

const (
	ladderWidth = 460.0 // width of a panel
	underBar    = 20.0  // height of the text under a bar
)

type ladderLayout struct {
	m             *DeviceLadder
	width, height float64
	rows
	titles [2][]string
	panels [2]panel
	groups rungGroups
	legend legend
}

var ladderTitles = [2]string{"Device memory at the device's peak", "Device memory at the allocator's peak"}

// moments returns a row's moments in the order of the panels.
func (r *LadderRow) moments() [2]*ladder.Moment {
	return [2]*ladder.Moment{r.Device, r.Allocator}
}

// extent returns the length of a bar in bytes, and whether device used is less than torch's part.
func extent(m *ladder.Moment) (end int64, over bool) {
	for _, r := range leaves(m) {
		end += max(*r.Bytes, 0)
	}
	used := bytesOf(m, ladder.RungDeviceUsed)
	return end, used != nil && *used < end
}

// bytesOf returns a rung's size, or nil if the moment does not have the rung or its size is unknown.
func bytesOf(m *ladder.Moment, rung string) *int64 {
	if r := m.Rung(rung); r != nil {
		return r.Bytes
	}
	return nil
}

// ends returns the sizes at which a bar has marks: the ends of the rungs that contain other rungs.
func ends(m *ladder.Moment) []int64 {
	var out []int64
	for _, rung := range []string{ladder.RungAllocated, ladder.RungReserved} {
		if b := bytesOf(m, rung); b != nil && *b > 0 {
			out = append(out, *b)
		}
	}
	return out
}

// total returns the text at the end of a bar.
func total(m *ladder.Moment) string {
	if used := bytesOf(m, ladder.RungDeviceUsed); used != nil {
		return table.Size(*used)
	}
	end, _ := extent(m)
	return "at least " + table.Size(end)
}

// under returns the text below a bar.
func under(m *ladder.Moment) string {
	text := "what torch reserved is not known"
	reserved, allocated := bytesOf(m, ladder.RungReserved), bytesOf(m, ladder.RungAllocated)
	switch {
	case reserved != nil && allocated != nil:
		text = fmt.Sprintf("allocated %s of %s reserved", table.Size(*allocated), table.Size(*reserved))
	case reserved != nil:
		text = "reserved " + table.Size(*reserved)
	}
	if m.Step != nil {
		text += fmt.Sprintf("; step %d", *m.Step)
	}
	if m.Phase != nil {
		text += ", " + *m.Phase
	}
	return text
}

func (m *DeviceLadder) layout() *ladderLayout {
	l := &ladderLayout{m: m, rows: rows{under: underBar}}
	var all []*ladder.Moment
	var high int64
	text := 0.0
	widest := 60.0
	for i := range m.Rows {
		widest = max(widest, l.label(i, m.Rows[i].Label, m.Rows[i].Badge))
		for _, at := range m.Rows[i].moments() {
			if at == nil {
				continue
			}
			all = append(all, at)
			end, _ := extent(at)
			high = max(high, end)
			text = max(text, canvas.Measure(total(at), valueSize))
		}
	}
	l.groups = groupRungs(all)
	x := margin + widest + 12
	for k := range l.panels { // both panels have the same scale, since readers compare them
		p := panel{left: x, zero: x, textRight: x + ladderWidth, high: high, unit: unitOf(high)}
		p.right = p.textRight - text - 8
		if high > 0 {
			p.perByte = (p.right - p.left) / float64(high)
		}
		l.panels[k] = p
		l.titles[k] = canvas.Wrap(ladderTitles[k], titleSize, ladderWidth, 2)
		x = p.textRight + panelGap
	}
	l.width = math.Ceil(x - panelGap + margin)
	y := margin + float64(max(len(l.titles[0]), len(l.titles[1])))*titleSize*lineHeight + 6
	y = l.place(y, barHeight+14) + 30
	l.legend, y = layLegend(l.groups.legend(), l.footnotes(), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

func (l *ladderLayout) footnotes() []string {
	notes := []string{}
	if len(l.groups.minor) > 0 {
		notes = append(notes, minorLabel+": "+strings.Join(l.groups.minor, "; "))
	}
	var labels []string
	ticks, over, unknown := false, false, false
	for i := range l.m.Rows {
		r := &l.m.Rows[i]
		labels = append(labels, r.Label)
		for _, m := range r.moments() {
			if m == nil {
				continue
			}
			_, more := extent(m)
			ticks, over, unknown = ticks || len(ends(m)) > 0, over || more, unknown ||
				bytesOf(m, ladder.RungDeviceUsed) == nil
		}
	}
	if ticks {
		notes = append(notes, "lines across a bar: where what is allocated ends, and what torch reserved")
	}
	if over {
		notes = append(notes, "the diamond marks what NVML has in use where torch reserved more, so that the clocks, "+
			"or the GPU, are not the same")
	}
	if unknown {
		notes = append(notes, "at least: no NVML sample can be set beside the allocator then, and what is outside "+
			"torch is not known")
	}
	notes = append(notes, missingNote(labels)...)
	return append(notes, l.m.Notes...)
}

func (m *DeviceLadder) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	for k := range l.panels {
		p := &l.panels[k]
		for n, line := range l.titles[k] {
			c.Text(line, p.left, margin+titleSize+float64(n)*titleSize*lineHeight, titleSize, canvas.Start, ink)
		}
		l.drawAxis(c, p)
		for i := range m.Rows {
			l.drawBar(c, i, k)
		}
	}
	for i := range m.Rows {
		l.drawLabel(c, i, l.panels[0].left-10)
	}
	l.legend.draw(c)
	return c, nil
}

func (l *ladderLayout) drawBar(c *canvas.Canvas, i, k int) {
	r, p := &l.m.Rows[i], &l.panels[k]
	m := r.moments()[k]
	if m == nil {
		text := "no allocator events"
		if k == 0 {
			text = "as above: the same GPU"
		}
		c.Text(text, p.left+8, l.middle(i)-underBar/2+valueSize*0.36, valueSize, canvas.Start, softInk)
		return
	}
	var sum int64
	for _, part := range l.groups.parts(m) {
		b := l.bar(i, p.x(sum), p.x(sum+part.bytes))
		drawPart(c, b, part.fill, part.bytes, p.unit)
		if part.frame && b.X1-b.X0 > 4 {
			c.Frame(b, 1, softInk)
		}
		sum += part.bytes
	}
	bar := l.bar(i, p.zero, p.x(sum))
	for _, at := range ends(m) {
		c.Line(p.x(at), bar.Y0-3, p.x(at), bar.Y1+3, 1.5, ink)
	}
	if used := bytesOf(m, ladder.RungDeviceUsed); used != nil && *used < sum {
		c.Diamond(p.x(*used), bar.Y0-4, 4, ink)
	}
	at := "device's peak of "
	if k == 1 {
		at = "allocator's peak of "
	}
	c.Shape(at+r.Label, bar, l.within(p))
	c.Text(total(m), bar.X1+6, (bar.Y0+bar.Y1)/2+valueSize*0.36, valueSize, canvas.Start, ink)
	c.Text(canvas.Fit(under(m), insideSize, p.textRight-p.left-4), p.left+4, bar.Y1+5+insideSize, insideSize,
		canvas.Start, softInk)
}

func (m *DeviceLadder) describe() string {
	var b strings.Builder
	for _, r := range m.Rows {
		b.WriteString(r.Label)
		if r.Badge != "" {
			b.WriteString(" [" + r.Badge + "]")
		}
		for k, at := range r.moments() {
			if at == nil {
				continue
			}
			fmt.Fprintf(&b, ": %s: %s", strings.ToLower(ladderTitles[k]), total(at))
			for _, rung := range leaves(at) {
				fmt.Fprintf(&b, ", %s %s", words(RungTitle(rung.Rung)), table.Size(*rung.Bytes))
			}
		}
		b.WriteString(". ")
	}
	return strings.TrimSpace(b.String())
}
