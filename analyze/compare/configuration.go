package compare

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
)

// Configuration lists what all runs of a study have in common, and what distinguishes them.
type Configuration struct {
	// Common has the facts that all runs have, with one value.
	Common []identity.Fact `json:"common"`
	// Some has the facts that only some runs have, with the one value that these share: plain training has no
	// clipping norm, an MLP no sequence length.
	Some []partialFact `json:"some"`
	// Varying names the facts that differ between the runs that have them, in the same order.
	Varying []string `json:"varying"`
}

// A partialFact is a fact of some runs only.
type partialFact struct {
	identity.Fact
	Runs []string `json:"runs"` // labels of the runs that have the fact
}

// configure sorts the facts of cells.
func configure(cells []Cell) Configuration {
	c := Configuration{Common: []identity.Fact{}, Some: []partialFact{}, Varying: []string{}}
	type seen struct {
		partialFact
		differs bool
	}
	by := map[string]*seen{}
	var order []string
	for i := range cells {
		for _, f := range cells[i].RunFacts {
			s := by[f.What]
			if s == nil {
				s = &seen{partialFact: partialFact{Fact: f}}
				by[f.What] = s
				order = append(order, f.What)
			}
			s.differs = s.differs || !s.Equals(&f)
			s.Runs = append(s.Runs, cells[i].Label)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return rankOf(by[a].Fact) - rankOf(by[b].Fact) })
	for _, what := range order {
		switch s := by[what]; {
		case s.differs:
			c.Varying = append(c.Varying, what)
		case len(s.Runs) < len(cells):
			c.Some = append(c.Some, s.partialFact)
		default:
			c.Common = append(c.Common, s.Fact)
		}
	}
	return c
}

// rankOf puts first what a reader asks for first.
func rankOf(f identity.Fact) int {
	if k := slices.Index(configurationOrder, f.What); k >= 0 {
		return k
	}
	if f.Param {
		return len(configurationOrder)
	}
	return len(configurationOrder) + 1
}

var configurationOrder = []string{"method", "clipping", "model", "preset", "batch_size", "physical_batch_size",
	"seq_len", "precision", "optimizer", "checkpointing",
	"zero_grad", "num_iter", "warmup_iter", "GPU", "driver", "torch", "CUDA", "cuDNN", "Opacus"}

// Fact returns the value that a cell has for a fact, or "" if it has none.
func (c *Cell) Fact(what string) string {
	if f := c.RunFact(what); f != nil {
		return f.Value
	}
	return ""
}

// Facts returns all that is known of a cell's environment.
func (c *Cell) Facts() []identity.Fact { return c.RunFacts }
