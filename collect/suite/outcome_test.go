package suite

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

func TestOutcomeErr(t *testing.T) {
	run := func(name, status string) store.Run {
		return store.Run{Manifest: &schemas.Manifest{Name: name, Status: status}}
	}
	ok, bad := run("a", schemas.StatusOK), run("b", schemas.StatusOOM)
	for _, c := range []struct {
		out        Outcome
		want, hint string
	}{
		{Outcome{Runs: []store.Run{ok}, Planned: 1}, "", ""},
		{Outcome{Runs: []store.Run{ok}, Planned: 3, Interrupted: true},
			"the suite was interrupted after 1 of 3 experiments", "; --resume records the others"},
		{Outcome{Runs: []store.Run{ok, bad}, Planned: 2}, "1 of 2 experiments did not end well: b (oom)",
			"; --resume --retry-failed repeats the failed ones"},
		{Outcome{Runs: []store.Run{ok}, Planned: 1, Failures: []error{errors.New("no")}},
			"dpsight could not record or ingest 1 of 1 experiment", "dpsight runs lists the recorded runs"},
		{Outcome{Runs: []store.Run{ok}, Planned: 2}, "dpsight could not record or ingest 0 of 2 experiments",
			"dpsight runs lists the recorded runs"},
	} {
		err := c.out.Err()
		if c.want == "" {
			if err != nil {
				t.Errorf("all is well: %v", err)
			}
			continue
		}
		var hinted interface{ Hint() string }
		if err == nil || err.Error() != c.want || !errors.As(err, &hinted) || !strings.HasSuffix(hinted.Hint(), c.hint) {
			t.Errorf("%v, want %s, with %s", err, c.want, c.hint)
		}
	}
}
