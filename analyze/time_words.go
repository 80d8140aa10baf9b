package analyze

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/timing"
)

// TimeWords are the warnings that remarks on the times of steps make; those on the times of modules make none.
func TimeWords(remarks ...timing.Remark) (words []string) {
	for _, r := range remarks {
		switch r.Kind {
		case timing.RemarkOnlyInstrumented:
			words = append(words, "times come from instrumented steps: there is no bare one")
		case timing.RemarkCaptured:
			words = append(words, capturedWords(r.Steps))
		}
	}
	return words
}

// capturedWords say why captured steps have no time.
func capturedWords(steps []int64) string {
	who, has := fmt.Sprintf("step %d", steps[0]), "has"
	if n := len(steps); n > 1 {
		who, has = fmt.Sprintf("%d steps (%d to %d)", n, steps[0], steps[n-1]), "have"
	}
	return fmt.Sprintf("%s %s no time: forward and backward took none on the GPU, as where a CUDA graph captures them; "+
		"replays of a graph are steps only where the script calls dpsight.step() after each", who, has)
}
