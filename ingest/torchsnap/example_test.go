package torchsnap_test

import (
	"fmt"
	"log"

	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// The example reads a snapshot that torch wrote, without using Python. The snapshot may be compressed.
func ExampleReadFile() {
	snapshot, err := torchsnap.ReadFile("testdata/vanilla.pickle.zst", torchsnap.Options{})
	if err != nil {
		log.Fatal(err)
	}
	events := &snapshot.Devices[0]
	allocations := 0
	for _, action := range events.Action {
		if action == schemas.ActionAlloc {
			allocations++
		}
	}
	fmt.Println(events.Len(), "events,", allocations, "allocations")
	// Output:
	// 5358 events, 1911 allocations
}
