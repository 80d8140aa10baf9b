package ingest

import (
	"fmt"
	"path/filepath"

	"github.com/dpsight/dpsight/schemas/spool"
)

// living lists the processes that are still running among those that write the live journals of a spool folder.
func living(dir string) ([]int, error) {
	paths, err := spool.LiveJournals(dir)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, p := range paths {
		var pid int
		var start string
		if n, _ := fmt.Sscanf(filepath.Base(p), "%d-%s", &pid, &start); n == 2 && pid > 0 && alive(pid) {
			out = append(out, pid)
		}
	}
	return out, nil
}
