package findings

import (
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	adapterPercent = 5 // of the peak, what dropout of adapters makes
	adapterDropout = "lora_dropout"
)

// adapterDropout looks for what the dropout of LoRA adapters makes: for each layer that is adapted a mask, and a copy
// of the layer's input, which layers could share without it.
func (x *evidence) adapterDropout() []Finding {
	own := func(a *schemas.Allocation) bool {
		m := x.modules.ByID[a.Module]
		return m != nil && strings.Contains(m.Path, adapterDropout)
	}
	held := x.bytesAtPeak(schemas.Activations, own)
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, adapterPercent) {
		return nil
	}
	f := x.finding(AdapterDropout)
	x.of(&f, held)
	part := x.counted(schemas.Activations).where(own)
	blocks := 0
	for i, a := range x.l.Allocs {
		if part(i, a) > 0 {
			blocks++
		}
	}
	f.Facts = HeldFacts{Blocks: blocks}
	x.line(&f, part)
	x.savesWithout(&f, x.held(schemas.Activations, own), x.looked, AtMost)
	return []Finding{f}
}
