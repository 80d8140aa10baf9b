package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// examples/instrument has measurements of what recording costs on a GPU, compared with no dpsight. Steps of 10 ms, and
// a whole run of them, take less than 5 % longer on average, whether the device or the host sets the pace. Drains take
// under 5 % of wall time. docs/cost.md must have these figures.
func TestInstrumentCosts(t *testing.T) {
	cost, err := os.ReadFile(filepath.Join("..", "docs", "cost.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(strings.Join(strings.Fields(string(cost)), " "), "−", "-")
	for part, limit := range map[string]float64{"busy": 1, "steps": 5, "steps-other-host": 5, "steps-phased": 100} {
		text, err := os.ReadFile(filepath.Join("instrument", part+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		row := map[string][]float64{}   // by mode: a bare step, what it costs, all steps, what they cost, drains
		turns := map[string][]float64{} // by mode: all steps, turn by turn
		var longer []float64            // by turn: ms by which an instrumented step is longer than a bare step
		for line := range strings.Lines(string(text)) {
			var turn int
			var mode string
			var bare, all float64
			if n, _ := fmt.Sscanf(line, "turn %d, %4s: %f, all %f", &turn, &mode, &bare, &all); n == 4 {
				turns[mode] = append(turns[mode], all)
			}
			if i := strings.Index(line, "+"); i >= 0 && strings.HasPrefix(line, "full-") {
				var ms float64
				if _, err := fmt.Sscanf(line[i:], "%f", &ms); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				longer = append(longer, ms)
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
		if none == nil || bare == nil || full == nil || len(turns["full"]) == 0 || len(longer) != len(turns["full"]) {
			t.Fatalf("%s: a mode is missing: %v, %v", part, row, turns)
		}
		// The file's mean leaves out the first block of steps, in which 14 of the run's 3,000 steps are instrumented.
		// The cost of these 14 instrumented steps is added here.
		slices.Sort(longer)
		first := 100 * 14 * longer[len(longer)/2] / (3000 * none[2])
		if bare[1] >= limit || full[1] >= limit || full[3]+first >= max(limit, 5) || none[0] < 9 || none[0] > 11 {
			t.Errorf("%s: of %.2f ms, bare steps cost %.2f %%, in a recorded run %.2f %%, all steps %.2f and %.2f %%",
				part, none[0], bare[1], full[1], full[3], first)
		}
		if full[4] >= 5 {
			t.Errorf("%s: drains take %.2f %% of wall time", part, full[4])
		}
		says := []string{fmt.Sprintf("| %.2f |", none[0]), fmt.Sprintf("%+.2f %%", bare[1]),
			fmt.Sprintf("%+.2f %%", full[1]),
			fmt.Sprintf("%+.2f %%", full[3]), fmt.Sprintf("| %.2f %% |", full[4])}
		switch part {
		case "steps":
			says = append(says, fmt.Sprintf("and %.1f %% of the run", first),
				fmt.Sprintf("and %.1f %% where the host does", full[3]+first))
		case "busy":
			says = append(says, fmt.Sprintf("add %.1f and", first), fmt.Sprintf("takes %.1f %% longer where the device",
				full[3]+first))
		case "steps-other-host":
			says = []string{fmt.Sprintf("it was %.1f %% (`steps-other-host.txt`)", full[3]+first)}
			for _, all := range turns["none"] {
				says = append(says, fmt.Sprintf("%.1f", all))
			}
		}
		if part == "steps-phased" { // an earlier agent recorded all steps with phases
			says = []string{fmt.Sprintf("cost %.2f %% (an earlier agent", full[1])}
		}
		for _, say := range says {
			if !strings.Contains(page, say) {
				t.Errorf("docs/cost.md has no %q of %s", say, part)
			}
		}
	}
}

// examples/instrument/agents.txt compares the agent, after it was split into its present modules, with the agent
// before. By the median over blocks, a step takes at most 3 % longer on the host.
func TestAgentsCostAlike(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("instrument", "agents.txt"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var row struct {
			Kind     string
			Steps    int
			Ratio    float64
			Interval [2]float64
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		seen[row.Kind]++
		if row.Steps < 1000 || row.Ratio > 1.03 || row.Ratio < row.Interval[0] || row.Ratio > row.Interval[1] {
			t.Errorf("%s steps: new beside old %.4f %v, in %d steps", row.Kind, row.Ratio, row.Interval, row.Steps)
		}
	}
	for _, kind := range []string{"instrumented", "bare", "unphased"} {
		if seen[kind] == 0 {
			t.Errorf("%s steps were not measured", kind)
		}
	}
}
