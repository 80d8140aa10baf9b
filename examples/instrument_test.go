package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the instrument costs beside no dpsight at all was measured on a GPU: steps of 10 ms, and all of a run of them, drains left out, take
// less than 5 % more, whether the device sets their pace or the host; drains take under 5 % of wall time. README has these figures.
func TestInstrumentCosts(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for part, limit := range map[string]float64{"busy": 1, "steps": 5, "again": 5, "steps-phased": 100} {
		text, err := os.ReadFile(filepath.Join("instrument", part+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		row := map[string][]float64{}   // by mode: a bare step, what it costs, all steps, what they cost, drains
		turns := map[string][]float64{} // by mode: all steps, turn by turn
		for line := range strings.Lines(string(text)) {
			var turn int
			var mode string
			var bare, all float64
			if n, _ := fmt.Sscanf(line, "turn %d, %4s: %f, all %f", &turn, &mode, &bare, &all); n == 4 {
				turns[mode] = append(turns[mode], all)
			}
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
		if none == nil || bare == nil || full == nil || len(turns["full"]) == 0 || len(turns["none"]) != len(turns["full"]) {
			t.Fatalf("%s: a mode is missing: %v, %v", part, row, turns)
		}
		// Drains are a share of the recorded run's own time. Turns are compared each with itself: hosts differ by more from one to the next.
		var undrained []float64
		for i, all := range turns["full"] {
			undrained = append(undrained, 100*(all*(1-full[4]/100)/turns["none"][i]-1))
		}
		slices.Sort(undrained)
		middle := undrained[len(undrained)/2]
		if bare[1] >= limit || full[1] >= limit || middle >= limit || none[0] < 9 || none[0] > 11 {
			t.Errorf("%s: of %.2f ms, bare steps cost %.2f %%, in a recorded run %.2f %%, all steps %.2f %%, drains left out", part, none[0], bare[1], full[1], middle)
		}
		if full[4] >= 5 {
			t.Errorf("%s: drains take %.2f %% of wall time", part, full[4])
		}
		says := []string{fmt.Sprintf("| %.2f |", none[0]), fmt.Sprintf("%+.2f %%", bare[1]), fmt.Sprintf("%+.2f %%", full[1]),
			fmt.Sprintf("%+.2f %%", full[3]), fmt.Sprintf("| %.2f %% |", full[4])}
		if part == "steps" {
			says = append(says, fmt.Sprintf("%.1f %%, drains left out, where the host does (of three turns %.1f, %.1f and %.1f %%;", middle, undrained[0], undrained[1], undrained[2]))
		}
		if part == "again" {
			says = []string{fmt.Sprintf("on another host, with 4 layers, %.1f, %.1f and %.1f %%: `again.txt`", undrained[0], undrained[1], undrained[2])}
			for _, all := range turns["none"] {
				says = append(says, fmt.Sprintf("%.1f", all))
			}
		}
		if part == "steps-phased" { // what there was before most steps went without phases
			says = []string{fmt.Sprintf("cost %.2f %% there", full[1])}
		}
		for _, say := range says {
			if say = strings.ReplaceAll(say, "-", "−"); !strings.Contains(string(readme), say) {
				t.Errorf("README has no %q of %s", say, part)
			}
		}
	}
}
