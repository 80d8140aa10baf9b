package suite

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas/store"
)

// If a suite's file has a secret, in a parameter, a name or a URL, dpsight shows it nowhere: not in the plan, in the
// name of a folder or file, in a file's text, or on the console.
func TestPlantedInNames(t *testing.T) {
	for name, text := range map[string]string{
		"varied":      "experiments: [{n: 1, token: SECRET}, {n: 2, token: other-hush-77}]",
		"alone":       "experiments: [{n: 1, token: SECRET}, {n: 1}]",
		"by its form": "experiments: [{n: 1, repo: gh~p_PwEabcdeFGHIJK0123456789LmnopQRSTUV}, {n: 2, repo: none}]",
		"in a URL":    "matrix: {n: [1, 2]}\ndefaults: {proxy: 'http://bob:SECRET@host'}\nnames: '{proxy}-{n}'",
		"template":    "names: '{n}-{token}'\nmatrix: {n: [1, 2]}\ndefaults: {token: SECRET}",
		"short":       "names: '{n}-{token}'\nmatrix: {n: [1, 2]}\ndefaults: {token: x7Z}",
		"given":       "experiments: [{n: 1, token: SECRET, name: with-SECRET}, {n: 2, token: SECRET, name: two}]",
		"baseline":    "baseline: {token: SECRET}\nmatrix: {n: [1, 2]}\ndefaults: {token: SECRET}",
		"the suite's": "name: of-gh~p_PwEabcdeFGHIJK0123456789LmnopQRSTUV\nmatrix: {n: [1, 2]}",
	} {
		// The secret has characters that become dashes in a folder's name, so the test searches for its parts. A ~,
		// which the test removes, keeps scanners from finding the secrets in this file.
		text = strings.NewReplacer("SECRET", "hush@hush!77", "~", "").Replace(text)
		secrets := []string{"hush", "x7Z", "PwEabcde"}
		if !strings.HasPrefix(text, "name:") {
			text = "name: s\n" + text
		}
		s := parse(t, text+"\ncommand: ['true']\n")
		dir := filepath.Join(t.TempDir(), "st")
		out, _ := one(t, s, dir, nil)
		plan, err := json.Marshal(s.Plan(nil, false))
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]string{"the plan": string(plan), "the report's folder": s.ReportFolder("st")}
		for _, task := range s.Tasks() {
			shown["the console"] += task.Title() + "\n"
		}
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				t.Fatal(err)
			}
			shown["the name of "+path] = path
			if d.Type().IsRegular() {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				shown[path] = string(b)
			}
			return nil
		})
		for where, text := range shown {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s: %s has the secret: %q", name, where, text)
				}
			}
		}
		names := map[string]bool{}
		for _, x := range s.Experiments {
			names[x.Name] = true
		}
		if len(names) != 2 || len(out.Results) != 2 || len(out.Runs) != 2 {
			t.Errorf("%s: names %v, %d runs", name, names, len(out.Runs))
		}
		if again, err := s.Resume(store.Open(dir), ResumeOptions{Machine: &collect.Machine{}}); err != nil ||
			len(again.Todo) != 0 {
			t.Errorf("%s: it is not known again: %+v, %v", name, again, err)
		} else {
			again.Close()
		}
	}
}
