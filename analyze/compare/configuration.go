package compare

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
)

// Configuration lists the facts that all runs of a study have in common, and the facts that distinguish runs.
type Configuration struct {
	// Common has the facts that all runs have with the same value.
	Common []identity.Fact `json:"common"`
	// Some has the facts that only some runs have, with the same value in all of these runs: plain training has no
	// clipping norm, and an MLP no sequence length.
	Some []partialFact `json:"some"`
	// Varying names the facts whose values differ between runs.
	Varying []string `json:"varying"`
}

// A partialFact is a fact that only some of the runs have, with the same value in all of these.
type partialFact struct {
	identity.Fact
	Runs []string `json:"runs"` // labels of the runs that have the fact
}

// configure sorts the facts of cells into common, partial and varying facts.
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

// rankOf returns a fact's position in a configuration: facts that readers look for first have the lowest rank.
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

// Facts returns all known facts about a cell's environment.
func (c *Cell) Facts() []identity.Fact { return c.RunFacts }
