package spool_test

import (
	"fmt"
	"log"

	"github.com/dpsight/dpsight/schemas/spool"
)

// The example reads the journal of a rank. The journal has the marks of the training loop and the allocator's events.
func ExampleOpenSealed() {
	journal, err := spool.OpenSealed("../../examples/headline/20261122T203651Z-ghost-3dc5ae/spool/rank-0.dps.zst")
	if err != nil {
		log.Fatal(err)
	}
	updates := 0
	for _, mark := range journal.Marks {
		if mark.Kind == spool.OptimizerEnd {
			updates++
		}
	}
	fmt.Println("torch", journal.Environment.Torch)
	fmt.Println(len(journal.Modules), "modules,", updates, "updates")
	fmt.Println("torn:", journal.Torn != nil)
	// Output:
	// torch 2.11.0+cu130
	// 227 modules, 8 updates
	// torn: false
}
