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
// steps that the host sets the pace of, for which no such limit holds.
func TestInstrumentCosts(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"busy", "steps"} {
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
		// Where the host sets the pace 5 % are missed by what stands there: 5.7 %.
		limits := map[string][2]float64{"busy": {1, 5}, "steps": {7, 6}}[part]
		if bare[1] >= limits[0] || full[1] >= limits[0] || full[3]-full[4] >= limits[1] || none[0] < 10 || none[0] > 12 {
			t.Errorf("%s: of %.2f ms, bare steps cost %.2f %%, in a recorded run %.2f %%, all steps %.2f %%", part, none[0], bare[1], full[1], full[3])
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
