package ingest

import "github.com/dpsight/dpsight/schemas"

// DerivedFiles returns the names of the files that ingest writes into a run's folder. ingest can derive them again from
// the journals, so a store may be kept without them.
func DerivedFiles() []string {
	return []string{
		schemas.Events.File(), schemas.Marks.File(), schemas.Allocations.File(), schemas.Owners.File(),
		schemas.Steps.File(),
		schemas.Phases.File(), schemas.Modules.File(), schemas.Checkpoints.File(), schemas.Segments.File(),
		schemas.Stacks.File(), schemas.Lines.File(), schemas.Holders.File(),
		schemas.Processes.File(), schemas.ModuleTimes.File(), schemas.Reserved.File(), schemas.HostMarks.File(),
		schemas.IngestReportFile,
	}
}
