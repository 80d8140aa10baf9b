package selected_test

import (
	"fmt"
	"log"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/selected"
)

// The example does the same as "dpsight breakdown vanilla --store examples/headline". The example selects a run and
// divides the bytes at its peak into categories. The example prints the categories of 1 % or more.
func ExampleSource_Select() {
	quiet := func(string) {}
	source := selected.Source{Store: "../../examples/headline", Named: true, Say: quiet, Note: quiet, Warn: quiet}
	runs, err := source.Select([]string{"vanilla"})
	if err != nil {
		log.Fatal(err)
	}
	at, err := memory.ParseAt("peak")
	if err != nil {
		log.Fatal(err)
	}
	document, err := runs.Breakdown(at)
	if err != nil {
		log.Fatal(err)
	}
	device := document.Runs[0].Devices[0]
	fmt.Println("allocated", device.AllocatedBytes)
	for _, c := range device.Categories {
		if c.Bytes*100 >= device.AllocatedBytes {
			fmt.Println(c.Category, c.Bytes)
		}
	}
	// Output:
	// allocated 63666013696
	// parameters 4687183872
	// optimizer_state 9374367744
	// activations 45341999108
	// activation_gradients 4194304000
}
