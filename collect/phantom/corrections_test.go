package phantom

import (
	"bytes"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

var (
	registered   = regexp.MustCompile(`(?m)^    \{"([a-z-]+)", PHANTOM_[A-Z]+, phantom_[a-z_]+\},$`)
	describedRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|.*$")
	describedIn  = regexp.MustCompile(`\[[^]]*\]\((csrc/[a-z_/]+\.c)\) \| ([0-9]+)$`)
	besideRow    = regexp.MustCompile(`(?m)^\| [^|\n]+ \| (\[[^|\n]+\)) \| ([0-9]+) \|`)
	besideFile   = regexp.MustCompile(`\]\(([^)]+)\)`)
)

// registeredCorrections returns the names of the corrections in csrc/corrections/corrections.c.
func registeredCorrections(t *testing.T) (names []string) {
	t.Helper()
	list, err := sources.ReadFile("csrc/corrections/corrections.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range registered.FindAllSubmatch(list, -1) {
		names = append(names, string(match[1]))
	}
	return names
}

// CORRECTIONS.md has a row for each correction that corrections.c lists, and no other rows of corrections. A row has
// the correction's file, the file's number of lines, what the correction gains, and its source. Each C file in
// csrc/corrections has a row.
func TestCorrectionsAreDescribed(t *testing.T) {
	page, err := os.ReadFile("CORRECTIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	var names []string
	for _, match := range describedRow.FindAllSubmatch(page, -1) {
		name := string(match[1])
		names = append(names, name)
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(string(match[0]), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if len(cells) != 6 {
			t.Fatalf("%s has %d cells", name, len(cells))
		}
		in := describedIn.FindStringSubmatch(cells[2] + " | " + cells[3])
		if in == nil {
			t.Errorf("%s has no file and lines: %q, %q", name, cells[2], cells[3])
			continue
		}
		source, err := sources.ReadFile(in[1])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if lines := strconv.Itoa(bytes.Count(source, []byte("\n"))); lines != in[2] {
			t.Errorf("%s: %s has %s lines, CORRECTIONS.md says %s", name, in[1], lines, in[2])
		}
		described[in[1]] = true
		if gain := cells[4]; !strings.ContainsAny(gain, "0123456789") || cells[5] == "" {
			t.Errorf("%s: no gain (%q), or no source (%q)", name, gain, cells[5])
		}
	}
	if want := registeredCorrections(t); len(want) < 5 || !slices.Equal(names, want) {
		t.Errorf("CORRECTIONS.md has %q, corrections.c %q", names, want)
	}
	for _, file := range sourcesOf(t, ".c") {
		if path.Dir(file) == "corrections" && path.Base(file) != "corrections.c" && !described["csrc/"+file] {
			t.Errorf("no row of CORRECTIONS.md is about %s", file)
		}
	}
}

// Files with special cases outside csrc/corrections have as many lines as CORRECTIONS.md says.
func TestLinesBesideTheMechanisms(t *testing.T) {
	page, err := os.ReadFile("CORRECTIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := besideRow.FindAllSubmatch(page, -1)
	if len(rows) < 4 {
		t.Errorf("%d rows name whole files", len(rows))
	}
	for _, row := range rows {
		lines := 0
		for _, link := range besideFile.FindAllSubmatch(row[1], -1) {
			source, err := os.ReadFile(string(link[1]))
			if err != nil {
				t.Error(err)
			}
			lines += bytes.Count(source, []byte("\n"))
		}
		if strconv.Itoa(lines) != string(row[2]) {
			t.Errorf("%s has %d lines, CORRECTIONS.md says %s", row[1], lines, row[2])
		}
	}
}

// If a correction for memory that the driver takes for itself is switched off, the phantom GPU places some segments
// elsewhere than an H200 did. The test leaves out the correction cublas-handle, since places.py makes no cuBLAS
// handle.
func TestPlacesWithoutACorrection(t *testing.T) {
	testkit.Python(t)
	for _, name := range []string{"context", "local-memory", "first-kernel", "more-code"} {
		got := places(t, placesWanted, "PHANTOM_WITHOUT="+name)
		off, of := 0, 0
		for device, recorded := range placesRecorded {
			for i, place := range recorded {
				of++
				if got[device][i] != place {
					off++
				}
			}
		}
		t.Logf("without %s %d of %d segments lie elsewhere", name, off, of)
		if off == 0 {
			t.Errorf("%s moves no segment", name)
		}
	}
}

// For each correction of cuDNN's workspaces there is a convolution whose workspace differs from the recorded one if
// this correction is switched off. The workspaces of the other convolutions then stay as recorded.
func TestWorkspacesWithoutACorrection(t *testing.T) {
	testkit.Rest(t)
	profile, err := LoadProfile("h200")
	if err != nil {
		t.Fatal(err)
	}
	random := randomConvolutions(t)
	names := []string{"clusters", "products", "winograd", "fourier", "fourier-tiles"}
	cases := []convolution{convolutions[0], random[23], random[2565], random[3290], random[5575]}
	for _, without := range append([]string{""}, names...) {
		taken, cudnn := workspaces(t, profile, cases, "PHANTOM_WITHOUT="+without)
		if cudnn/100 != 919 {
			t.Skipf("cuDNN %d is not the one that was recorded", cudnn)
		}
		for i, c := range cases {
			var sum int64
			for _, bytes := range taken[i] {
				sum += bytes
			}
			if same := sum == c.recorded; same != (names[i] != without) {
				t.Errorf("without %q, the convolution of %s takes %d bytes, recorded %d", without, names[i], sum, c.recorded)
			}
		}
	}
}
