package findings

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
)

// If two runs of the same method have different arguments, they are no repeats of each other.
func TestTrialsAreOfOneCommand(t *testing.T) {
	m := map[string]any{"method": "dp"}
	methods := []analyze.Summary{summaries.Scripted("d", 1000, m, "python", "train.py", "--bs", "8"),
		summaries.Scripted("e", 1000, m, "python",
			"train.py", "--bs", "8"), summaries.Scripted("f", 2000, m, "python", "train.py", "--bs", "16")}
	if own, _ := trialsOf(&methods[0], methods); len(own.runs) != 2 {
		t.Errorf("%d runs of one trial", len(own.runs))
	}
}
