package collect

import "time"

// supervisorName is the argv[0] with which this program runs as a supervisor.
const supervisorName = "dpsight-supervisor"

// runIDVariable is set in the environment of every process of a run. The agent does not need it. If the supervisor is
// killed, the collector finds a run's processes by it.
const runIDVariable = "DPSIGHT_RUN_ID"

const (
	// settleTime is how long helpers of the experiment may outlive it (multiprocessing's resource tracker ends a moment
	// after its parent) before they count as left running.
	settleTime = time.Second
	// drainTime limits the wait for the agents' answers to a request for a drain.
	drainTime = time.Second
	// workTime limits the wait for an agent that has begun to drain, since half a million events take seconds.
	workTime = 10 * time.Second
	// orphanGrace is the time between TERM and KILL after the collector has died.
	orphanGrace = 2 * time.Second
	// killTime limits the wait for killed processes: a process in an uninterruptible sleep may never end.
	killTime = 20 * time.Second
)

// supervisorSpec is the first message to a supervisor. Messages are encoded as gobs, since JSON would change an
// environment that is not UTF-8.
type supervisorSpec struct {
	Path    string // path of the executable
	Argv    []string
	Env     []string
	Dir     string
	Spool   string
	Cleanup string // folder to delete at the end
	// Terminal is true if the experiment's output is its own terminal.
	Terminal bool
	// Typed is true if the collector passes on what the user types on the terminal. The terminal is open here too,
	// so that its mode can be restored if the collector is killed.
	Typed bool
}

// supervisorCommand is a later message to a supervisor.
type supervisorCommand struct {
	Signal int           // signal to send to the experiment's process group
	Drain  bool          // request a drain from the agents before the signal
	End    bool          // end all processes
	Grace  time.Duration // between TERM and KILL; 0 kills at once
}

// supervisorReport is a message from a supervisor.
type supervisorReport struct {
	Started int      // pid of the started experiment
	Error   string   // why the experiment could not be started
	Exited  bool     // the experiment's first process has ended
	Ended   bool     // the last message
	Exit    treeExit // how the experiment ended, in a message with Ended
}

// treeExit says how an experiment and its processes ended.
type treeExit struct {
	Code   int
	Signal int // 0 means that the experiment exited by itself
	// LeftRunning is the number of processes that still ran when the first one had ended.
	LeftRunning int
	// Stuck is the number of processes that did not end in time even after SIGKILL.
	Stuck int
	// CPUNS is the supervisor's own CPU time.
	CPUNS int64
}
