package schemas

// Files of a run folder that hold the experiment's output, secrets masked as "***".
const (
	StdoutFile = "stdout.log"
	StderrFile = "stderr.log"
)
