package report

import (
	"fmt"
	"time"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/table"
)

// FitProgress describes how a search's last run ended. probes is the number of runs that the search is likely to make.
func FitProgress(done *predict.FitSearch, vary string, probes int) string {
	run := &done.Runs[len(done.Runs)-1]
	text := fmt.Sprintf("%s on %s, %s %d: ", done.Method, done.GPU, vary, run.Value)
	switch fits, why := run.Run.Fits, predictionWhy(&run.Run); {
	case fits == nil:
		text += "ended for another reason than memory"
		if why != "" {
			text += " (" + why + ")"
		}
	case !*fits:
		text += "does not fit"
		if why != "" {
			text += " (" + why + ")"
		}
	case run.Run.PeakReservedBytes != nil:
		text += fmt.Sprintf("fits, %s reserved", table.Size(*run.Run.PeakReservedBytes))
	default:
		text += "fits"
	}
	if run.Kept {
		text += ", as the store has it"
	}
	return fmt.Sprintf("%s (run %d of about %d)", text, len(done.Runs), probes)
}

// SlowProbe says how a search whose runs are long can end earlier.
func SlowProbe(took time.Duration) string {
	return fmt.Sprintf("this run took %.0f s, and the search makes several: --steps 3 ends each run after three steps",
		took.Seconds())
}
