package analyze

import "slices"

// Configuration is what the runs of a study have in common, said once, and what tells them apart.
type Configuration struct {
	Common []Fact `json:"common"`
	// Varying names the facts that differ between runs, in the same order.
	Varying []string `json:"varying"`
}

// configure sorts the facts of cells. A fact that some run lacks (plain training has no clipping norm) is common where
// those that have it agree.
func configure(cells []Cell) Configuration {
	c := Configuration{Common: []Fact{}, Varying: []string{}}
	type seen struct {
		fact    Fact
		differs bool
	}
	by := map[string]*seen{}
	var order []string
	for i := range cells {
		for _, f := range cells[i].facts {
			switch s := by[f.What]; {
			case s == nil:
				by[f.What] = &seen{fact: f}
				order = append(order, f.What)
			case !s.fact.equals(&f):
				s.differs = true
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return rankOf(by[a].fact) - rankOf(by[b].fact) })
	for _, what := range order {
		if s := by[what]; s.differs {
			c.Varying = append(c.Varying, what)
		} else {
			c.Common = append(c.Common, s.fact)
		}
	}
	return c
}

// rankOf puts first what a reader asks for first.
func rankOf(f Fact) int {
	if k := slices.Index(configurationOrder, f.What); k >= 0 {
		return k
	}
	if f.Param {
		return len(configurationOrder)
	}
	return len(configurationOrder) + 1
}

var configurationOrder = []string{"method", "clipping", "model", "preset", "batch_size", "physical_batch_size", "seq_len", "precision", "optimizer", "checkpointing",
	"zero_grad", "num_iter", "warmup_iter", "GPU", "driver", "torch", "CUDA", "cuDNN", "Opacus"}

// Fact is the value that a cell has of a fact, empty where it has none.
func (c *Cell) Fact(what string) string {
	if f := c.fact(what); f != nil {
		return f.Value
	}
	return ""
}

// Facts are all that is known of what a cell ran on and with.
func (c *Cell) Facts() []Fact { return c.facts }
