package suite

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// recover completes the runs that a killed suite left without tables, whether they ended or were cut short.
func (r *running) recover(runs []store.Run) {
	for _, run := range runs {
		if _, err := schemas.ReadIngestReport(run.Dir); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := merge(run.Dir)
		if err == nil {
			err = r.end(&collect.Result{Manifest: run.Manifest, Dir: run.Dir})
		}
		if err != nil {
			r.out.Failures = append(r.out.Failures, fmt.Errorf("run %s: %w", run.ID, err))
		}
	}
}

// merge merges the segments of a run's samples, unless another dpsight process is ingesting the run and so does that.
func merge(dir string) error {
	lock, err := schemas.LockPath(dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return collect.RecoverTables(dir)
}

// end calls the caller's End for a run.
func (r *running) end(result *collect.Result) error {
	if r.options.End == nil {
		return nil
	}
	return r.options.End(result)
}
