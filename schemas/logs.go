package schemas

// Files of a run folder that hold the experiment's output, secrets masked as "***".
const (
	StdoutFile = "stdout.log" // What the experiment wrote to standard output, with secrets masked.
	StderrFile = "stderr.log" // What the experiment wrote to standard error, with secrets masked.
)
