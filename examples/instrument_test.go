package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What the instrument costs beside no dpsight at all was measured on a GPU: where the device sets the pace of 10 ms steps it is under 1 % of a bare
// step and under 5 % of all steps, drains left out, which take under 5 % of wall time themselves. README has these figures, and those of
// steps that the host sets the pace of, for which no such limit holds: what they cost on a second host is held to README alone.
func TestInstrumentCosts(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"busy", "steps", "steps-again"} {
		text, err := os.ReadFile(filepath.Join("instrument", part+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		row := map[string][]float64{} // by mode: a bare step, what it costs, all steps, what they cost, drains
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(strings.ReplaceAll(line, " to ", "–"))
			if len(f) != 8 || f[0] != "none" && f[0] != "bare" && f[0] != "full" {
				continue
			}
			for _, i := range []int{1, 2, 4, 5, 7} {
				v, err := strconv.ParseFloat(f[i], 64)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				row[f[0]] = append(row[f[0]], v)
			}
		}
		none, bare, full := row["none"], row["bare"], row["full"]
		if none == nil || bare == nil || full == nil {
			t.Fatalf("%s: a mode is missing: %v", part, row)
		}
		// Drains are a share of the recorded run's own time. Where the host sets the pace its steps are longer than 5 % allow, and README says by how much.
		undrained := 100 * (full[2]*(1-full[4]/100)/none[2] - 1)
		limits, limited := map[string]struct{ bare, all, ms float64 }{"busy": {1, 5, 11}, "steps": {7, 6, 12}}[part]
		if limited && (bare[1] >= limits.bare || full[1] >= limits.bare || undrained >= limits.all || none[0] < 10 || none[0] > limits.ms) {
			t.Errorf("%s: of %.2f ms, bare steps cost %.2f %%, in a recorded run %.2f %%, all steps %.2f %%, drains left out", part, none[0], bare[1], full[1], undrained)
		}
		if say := fmt.Sprintf("%.1f %%, drains left out", undrained); part != "busy" && !strings.Contains(string(readme), say) {
			t.Errorf("README has no %q", say)
		}
		if full[4] >= 5 {
			t.Errorf("%s: drains take %.2f %% of wall time", part, full[4])
		}
		for _, say := range []string{fmt.Sprintf("| %.2f |", none[0]), fmt.Sprintf("+%.2f %%", bare[1]), fmt.Sprintf("+%.2f %%", full[1]),
			fmt.Sprintf("+%.2f %%", full[3]), fmt.Sprintf("| %.2f %% |", full[4])} {
			if !strings.Contains(string(readme), say) {
				t.Errorf("README has no %q of %s", say, part)
			}
		}
	}
}
