package agent_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// schemas.FailedHook has a message for each of the agent's hooks that may fail. The message says what the run loses
// without the hook.
func TestWhatEachHookLosesIsSaid(t *testing.T) {
	guarded := regexp.MustCompile(`(?m)@guarded\("([^"]+)"`)
	unnamed := schemas.FailedHook{Hook: "no such hook"}
	_, nothing, _ := strings.Cut(unnamed.Words(), "): ")
	hooks := 0
	err := filepath.WalkDir("python", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".py" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range guarded.FindAllStringSubmatch(string(text), -1) {
			hooks++
			hook := schemas.FailedHook{Hook: found[1], Fatal: found[1] == "starting the recording"}
			if strings.HasSuffix(hook.Words(), nothing) {
				t.Errorf("%s: %q: %s", path, found[1], hook.Words())
			}
		}
		return err
	})
	if err != nil || hooks < 30 {
		t.Errorf("%d hooks were found (%v)", hooks, err)
	}
}
