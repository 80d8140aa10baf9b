package collect

import (
	"encoding/binary"
	"os"
	"time"

	"github.com/dpsight/dpsight/schemas/spool"
)

// requestWord is where a marks file has its request (see package spool).
const requestWord = 12

// waitForDrain asks every agent that writes into a spool folder for a drain, and waits until each has answered (it does so at its
// next mark, which an idle process may never make), until stop, or until limit is over.
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
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		waiting := asked[:0]
		for _, path := range asked {
			if requested(path) {
				waiting = append(waiting, path)
			}
		}
		if asked = waiting; len(asked) == 0 {
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// requested reports whether a request is still unanswered.
func requested(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [4]byte
	_, err = f.ReadAt(b[:], requestWord)
	return err == nil && binary.LittleEndian.Uint32(b[:]) != 0
}
