package compare

import "github.com/dpsight/dpsight/schemas"

// grouped collects sentences that hold for several subjects, so that each appears once.
type grouped struct {
	order []string
	of    map[string][]string
	had   map[[2]string]bool
}

func NewGrouped() *grouped { return &grouped{of: map[string][]string{}, had: map[[2]string]bool{}} }

func (g *grouped) Add(sentence, of string) {
	if g.of[sentence] == nil {
		g.order = append(g.order, sentence)
	}
	if key := [2]string{sentence, of}; !g.had[key] {
		g.had[key] = true
		g.of[sentence] = append(g.of[sentence], of)
	}
}

// Lines returns the sentences, each with its subjects before it. If a sentence has many subjects, Lines gives only
// their number.
func (g *grouped) Lines() []string {
	const most = 4
	out := []string{}
	for _, s := range g.order {
		of := g.of[s]
		out = append(out, schemas.Shortlist(of, most)+": "+s)
	}
	return out
}
