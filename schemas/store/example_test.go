package store_test

import (
	"fmt"
	"log"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// A store is a folder of runs. The example selects a run by its name and reads one of its tables.
func Example() {
	selection, err := store.Open("../../examples/headline").Resolve([]string{"ghost"})
	if err != nil {
		log.Fatal(err)
	}
	run := selection.Runs[0]
	tables, err := store.Load(run, schemas.WantTimes)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.ID, run.Manifest.Source, run.Manifest.Status)
	for _, step := range tables.Steps[:2] {
		fmt.Println("step", step.Step, "peak", *step.PeakBytes, "bytes")
	}
	// Output:
	// 20261122T203651Z-ghost-3dc5ae measured ok
	// step 0 peak 58978998272 bytes
	// step 1 peak 70635068416 bytes
}
