package collect

import (
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// codeOf returns the user's code that the processes of a run executed.
func codeOf(journals []*spool.Journal) *schemas.Code {
	processes := make([][]schemas.CodeFile, len(journals))
	for i, j := range journals {
		processes[i] = j.Code
	}
	return schemas.NewCode(processes...)
}
