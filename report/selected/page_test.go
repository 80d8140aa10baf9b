package selected

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report/page"
)

// If a page has less room, it has only the events in the step of a run's peak, or only points. make test-page looks at
// these pages in a browser. make test-page sets the folder into which the test writes the pages.
func TestDetailOfAPage(t *testing.T) {
	s, _ := source(headline)
	runs, err := s.Select([]string{"ghost"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := runs.page("ghost", compare.Study{})
	if err != nil {
		t.Fatal(err)
	}
	written := map[string][]byte{}
	for room := page.MostBytes; room > 100_000; room -= 20_000 {
		var out bytes.Buffer
		if err := b.Write(&out, room); err != nil {
			t.Fatal(err)
		}
		if out.Len() > room {
			break
		}
		if detail := detailOf(t, out.Bytes()); written[detail] == nil {
			written[detail] = out.Bytes()
		}
		room = min(room, out.Len()+20_000)
	}
	for _, detail := range []string{page.DetailAll, page.DetailWindow, page.DetailPoints} {
		if written[detail] == nil {
			t.Errorf("no page has the detail %s", detail)
		}
		if folder := os.Getenv("DPSIGHT_TEST_PAGES"); folder != "" {
			if err := os.WriteFile(filepath.Join(folder, detail+".html"), written[detail], 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

// detailOf returns the detail that a page states for its only device.
func detailOf(t *testing.T, html []byte) string {
	t.Helper()
	var about struct{ Devices []struct{ Detail string } }
	part := regexp.MustCompile(`id="about">(.*?)</script>`).FindSubmatch(html)
	if part == nil || json.Unmarshal(part[1], &about) != nil || len(about.Devices) != 1 {
		t.Fatalf("what the page says of itself: %s", part)
	}
	return about.Devices[0].Detail
}
