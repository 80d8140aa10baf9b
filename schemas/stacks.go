package schemas

// ScratchPrefix begins the name of the temporary folder in which the sources of the agent and the phantom GPU lie while
// a run is recorded. Readers recognise stack frames of these sources by the prefix.
const ScratchPrefix = "dpsight-run-"

// StackFrame is one row of stacks.parquet: one frame of one stack. Equal stacks are stored once.
type StackFrame struct {
	RunID    string `parquet:"run_id,dict"`    // the run's id, as in run.json
	Rank     int32  `parquet:"rank,dict"`      // the process's RANK, from 0
	Stack    int64  `parquet:"stack_id,delta"` // number of the stack, from 1
	Depth    int32  `parquet:"depth"`          // number of the frame in the stack; 0 = innermost
	Function string `parquet:"function,dict"`  // the name of the function
	File     string `parquet:"file,dict"`      // the path of its file
	Line     int64  `parquet:"line,dict"`      // number of the line; 0 = unknown
}

// Stacks is stacks.parquet.
var Stacks = Table[StackFrame]{Name: "stacks", Version: 1}
