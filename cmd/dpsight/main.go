// Command dpsight shows where the GPU memory and time of a training run go, and what differentially private training
// costs over plain training.
//
//	dpsight collect --method ghost --preset small        record a built-in experiment
//	dpsight collect -- python train.py --epochs 1        record any training script, unchanged
//	dpsight predict -- python train.py                   does it fit on a GPU that is not here
//	dpsight breakdown                            what holds the memory at the peak
//	dpsight report runs -o out                           tables and figures
//	dpsight compare vanilla ghost                        two runs, or many as a pivot
//	dpsight check --baseline baseline.json               exit 1 where memory or time grew
//
// Results go to stdout. Progress, warnings and errors go to stderr. dpsight exits with 0 when it is done, 1 when an
// experiment or a check failed, and 2 on bad usage or bad input.
package main

import (
	"os"

	"github.com/dpsight/dpsight/schemas/process"
)

func main() {
	process.SurviveFileLimit()
	process.CollectLater()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
