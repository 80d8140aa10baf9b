package selected

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// The message after an ingest names the run. If another run has the same name, the message has the run's id.
func TestAfterIngest(t *testing.T) {
	one := func(folder, id string) schemas.Ingested {
		return schemas.Ingested{Dirs: []string{filepath.Join(folder, id)}}
	}
	away := filepath.Join(t.TempDir(), "with spaces")
	if err := os.MkdirAll(filepath.Dir(away), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(away, ghostID), os.DirFS(filepath.Join(headline, ghostID))); err != nil {
		t.Fatal(err)
	}
	figures := filepath.Join(t.TempDir(), "it's")
	for name, phases := range map[string][]schemas.Phase{"a": nil, "b": {{Phase: "load"}}} {
		dir := filepath.Join(figures, name)
		m := &schemas.Manifest{RunID: name, Name: name, Source: schemas.Imported,
			Import: &schemas.Import{Kind: schemas.ImportSweepTable}}
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = errors.Join(schemas.WriteManifest(dir, m), schemas.Phases.Write(dir, phases))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	several := "../../examples/headline-batch"
	runs, err := os.ReadDir(several)
	if err != nil {
		t.Fatal(err)
	}
	id := runs[0].Name()
	for _, test := range []struct {
		store string
		named bool
		doc   schemas.Ingested
		want  string
	}{
		{headline, false, one(headline, ghostID), "dpsight breakdown ghost"},
		{headline, true, one(headline+"/", ghostID), "dpsight breakdown ghost --store " + headline},
		{"runs", false, one(headline, ghostID), "dpsight breakdown ghost --store " + headline},
		{"runs", false, one(headline, vanillaBare), "dpsight runs --store " + headline},
		{"runs", false, one(away, ghostID), "dpsight breakdown ghost --store '" + away + "'"},
		{"runs", false, one(figures, "a"), "dpsight runs --store '" + strings.ReplaceAll(figures, "'", `'\''`) + "'"},
		{several, false, one(several, id), "dpsight breakdown " + id},
		{headline, false, schemas.Ingested{Dirs: []string{filepath.Join(headline, ghostID),
			filepath.Join(headline, vanillaID)}}, "dpsight runs"},
		{headline, false, schemas.Ingested{Dirs: []string{filepath.Join(headline, ghostID),
			filepath.Join(away, ghostID)}}, "dpsight runs " + headline + " '" + away + "'"},
		{headline, false, schemas.Ingested{Dirs: []string{"ghost/a", headline + "/b"}},
			"dpsight runs ./ghost " + headline},
		{figures, false, one(figures, "a"), "dpsight runs"},
		{figures, false, one(figures, "b"), "dpsight phases b"},
		{headline, false, schemas.Ingested{}, ""},
	} {
		s, _ := source(test.store)
		s.Named = test.named
		if got := s.AfterIngest(test.doc); got != test.want {
			t.Errorf("%+v: %q, want %q", test, got, test.want)
		}
	}
}
