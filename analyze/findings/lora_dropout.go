package findings

import (
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

const (
	adapterPercent = 5 // least percentage of the peak that dropout of adapters allocates
	adapterDropout = "lora_dropout"
)

// adapterDropout looks for the results of dropout in LoRA adapters: a mask for each adapted layer, and a copy of
// the layer's input, which layers could share without dropout.
func (x *evidence) adapterDropout() []Finding {
	own := func(a *schemas.Allocation) bool {
		m := x.modules.ByID[a.Module]
		return m != nil && strings.Contains(m.Path, adapterDropout)
	}
	f := x.needless(AdapterDropout, adapterPercent, own)
	if f == nil {
		return nil
	}
	x.savesWithout(f, x.held(schemas.Activations, own), x.looked, AtMost)
	return []Finding{*f}
}
