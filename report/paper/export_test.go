package paper

import "github.com/dpsight/dpsight/report/plates"

// Drawings returns all figures of a paper by name, in one of the styles of paper.yaml.
func Drawings(m *Model, style string) map[string]*plates.Drawing {
	b := newBuilder(m, m.Config)
	b.makeFigures()
	s, _ := b.style(style)
	out := map[string]*plates.Drawing{}
	for i := range b.plates {
		if d, err := b.plates[i].figure.Draw(s); err == nil {
			out[b.plates[i].Name] = d
		}
	}
	return out
}

// Captions returns, by name, the text that a paper has under each figure.
func Captions(m *Model) map[string]string {
	b := newBuilder(m, m.Config)
	b.makeFigures()
	out := map[string]string{}
	for i := range b.plates {
		out[b.plates[i].Name] = b.plates[i].Finding.text() + " " + b.plates[i].Caption.text()
	}
	return out
}

// Far returns the names whose values are far above all other values.
var Far = far

// AllStyles lists the styles that paper.yaml accepts.
var AllStyles = allStyles
