package collect

import (
	"time"

	"github.com/dpsight/dpsight/schemas/spool"
)

// waitForDrain requests a drain from every agent that writes into a spool folder. waitForDrain waits until each agent
// has answered, until stop is closed, or until limit is over: an idle process may never reach the mark at which it
// would answer. An agent that has begun to drain gets the additional time workTime.
func waitForDrain(dir string, limit time.Duration, stop <-chan struct{}) {
	journals, err := spool.LiveJournals(dir)
	if err != nil {
		return
	}
	var asked []string
	for _, path := range journals {
		if spool.Request(path, spool.RequestDrain) == nil {
			asked = append(asked, path)
		}
	}
	begin := time.Now()
	for len(asked) > 0 {
		waiting := asked[:0]
		for _, path := range asked {
			word, err := spool.Requested(path)
			patience := limit
			if word == spool.Answering {
				patience = max(limit, workTime)
			}
			if err == nil && word != 0 && time.Since(begin) < patience {
				waiting = append(waiting, path)
			}
		}
		asked = waiting
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
