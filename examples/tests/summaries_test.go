package examples_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// If the summaries of the recordings change, analyze.KeptVersion must change too. Otherwise dpsight would continue to
// show old figures from summaries that it kept earlier.
func TestSummariesHaveTheirVersion(t *testing.T) {
	sum := sha256.New()
	runs, err := filepath.Glob(headline + "/[0-9]*")
	if err != nil || len(runs) == 0 {
		t.Fatal(runs, err)
	}
	for _, dir := range runs {
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		in, err := store.Load(store.Run{Dir: dir, ID: m.RunID, Manifest: m}, analyze.SummaryTables|analyze.ListTables)
		if err != nil {
			t.Fatal(err)
		}
		row, summary := analyze.ListRun(*in), analyze.Summarize(*in)
		s, err := analyze.Keep(&row, &summary)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []json.RawMessage{s.Origin, s.Row, s.Compared} {
			sum.Write(part)
		}
	}
	type figures struct {
		Hash    string
		Version int
	}
	now, file := figures{hex.EncodeToString(sum.Sum(nil)[:8]), analyze.KeptVersion}, "tests/testdata/summaries.json"
	var kept figures
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	switch {
	case err != nil && !*update:
		t.Fatal(err)
	case err == nil && kept.Version == now.Version && kept != now:
		t.Fatalf("what summaries say changed, and their version did not (%+v, not %+v): raise analyze.KeptVersion, then "+
			"-update", now, kept)
	case kept != now && !*update:
		t.Errorf("%s is of version %d: -update", file, kept.Version)
	case *update:
		if b, err = json.Marshal(now); err == nil {
			err = os.WriteFile(file, append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
