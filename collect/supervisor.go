package collect

import "time"

// supervisorName is the argv[0] under which this program is a supervisor.
const supervisorName = "dpsight-supervisor"

// runIDVariable is set in the environment of every process of a run. The agent does not need this variable. The
// collector finds a run's processes by it if the supervisor itself is killed.
const runIDVariable = "DPSIGHT_RUN_ID"

const (
	// settleTime is how long helpers of the experiment may outlive it (multiprocessing's resource tracker ends a moment
	// after its parent) before they count as left running.
	settleTime = time.Second
	// drainTime bounds the wait for the agents' answer to a request for a drain.
	drainTime = time.Second
	// workTime bounds the wait for an agent that has begun to drain: half a million events take seconds.
	workTime = 10 * time.Second
	// orphanGrace is the time between TERM and KILL once the collector is gone.
	orphanGrace = 2 * time.Second
	// killTime bounds the wait for killed processes: one in an uninterruptible sleep may never end.
	killTime = 20 * time.Second
)

// supervisorSpec is the first message to a supervisor. Messages are gobs: JSON would change an environment that is not
// UTF-8.
type supervisorSpec struct {
	Path    string // path of the executable
	Argv    []string
	Env     []string
	Dir     string
	Spool   string
	Cleanup string // folder to remove at the end
	// Terminal is true if the experiment's output is a terminal of its own.
	Terminal bool
	// Typed is true if the collector passes on what the user types on the terminal. The terminal is open here too,
	// so that its mode can be restored if the collector is killed.
	Typed bool
}

// supervisorCommand is a later message to a supervisor.
type supervisorCommand struct {
	Signal int           // for the experiment's process group
	Drain  bool          // ask the agents for a drain before the signal
	End    bool          // end all processes
	Grace  time.Duration // between TERM and KILL; 0 kills at once
}

// supervisorReport is a message from a supervisor.
type supervisorReport struct {
	Started int      // pid of the experiment
	Error   string   // the experiment could not be started
	Exited  bool     // the experiment's first process ended
	Ended   bool     // the last message
	Exit    treeExit // with Ended
}

// treeExit is how an experiment and its processes ended.
type treeExit struct {
	Code   int
	Signal int // 0 = the experiment exited by itself
	// LeftRunning counts the processes that still ran when the first one had ended.
	LeftRunning int
	// Stuck counts the processes that even SIGKILL did not end in time.
	Stuck int
	// CPUNS is the supervisor's own CPU time.
	CPUNS int64
}
