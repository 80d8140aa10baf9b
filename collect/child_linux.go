package collect

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/dpsight/dpsight/collect/host"
)

// A child is a running experiment, which a supervisor process controls.
type child struct {
	supervisor *exec.Cmd
	runID      string
	pid        int // process id of the experiment's first process
	input      *os.File
	send       *gob.Encoder
	// exited is closed when the experiment's first process has ended, and ended when all its processes have.
	exited, ended chan struct{}
	exit          treeExit // valid once ended is closed
	lost          bool     // the supervisor itself died; valid once ended is closed
}

// startChild starts the experiment through a supervisor, which also holds the lock of the run. stdin may be nil. typed
// is the user's terminal if its input is passed on to the experiment, else nil.
func startChild(spec supervisorSpec, runID string, lock, typed, stdin, stdout, stderr *os.File) (*child, error) {
	controlRead, controlWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		controlRead.Close()
		controlWrite.Close()
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisorName},
		// The supervisor does not get the experiment's environment, which may name libraries to preload.
		Env:    []string{"GOMAXPROCS=2"},
		Stdout: stdout, Stderr: stderr,
		ExtraFiles: []*os.File{controlRead, statusWrite, lock},
		// The supervisor has its own process group, so that the collector decides whether to pass on a Ctrl-C at the
		// terminal.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if spec.Typed = typed != nil; spec.Typed {
		cmd.ExtraFiles = append(cmd.ExtraFiles, typed)
	}
	err = cmd.Start()
	controlRead.Close()
	statusWrite.Close()
	if err != nil {
		controlWrite.Close()
		statusRead.Close()
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	c := &child{supervisor: cmd, runID: runID, input: controlWrite, send: gob.NewEncoder(controlWrite),
		exited: make(chan struct{}), ended: make(chan struct{})}
	status := gob.NewDecoder(statusRead)
	var first supervisorReport
	if err = c.send.Encode(spec); err == nil {
		if status.Decode(&first) != nil {
			// The supervisor was killed before it reported that the experiment runs, so the experiment may be running.
			go c.follow(status, statusRead)
			return c, nil
		}
		if first.Error != "" {
			err = errors.New(first.Error)
		}
	}
	if err != nil {
		controlWrite.Close()
		statusRead.Close()
		cmd.Wait()
		return nil, fmt.Errorf("starting %s: %w", spec.Argv[0], err)
	}
	c.pid = first.Started
	go c.follow(status, statusRead)
	return c, nil
}

// follow reads the supervisor's reports until its last one.
func (c *child) follow(status *gob.Decoder, closer io.Closer) {
	defer close(c.ended)
	defer closer.Close()
	exited := false
	for {
		var r supervisorReport
		err := status.Decode(&r)
		if (err != nil || r.Exited || r.Ended) && !exited {
			exited = true
			close(c.exited)
		}
		if r.Ended {
			c.exit = r.Exit
			break
		}
		if err != nil {
			c.lost = true
			break
		}
	}
	c.supervisor.Wait()
	c.input.Close()
	if c.lost {
		killByRunID(c.runID)
		c.exit = treeExit{Code: 128 + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL)}
	}
}

// killByRunID ends the processes that a killed supervisor left behind. After the supervisor's death its processes have
// another reaper, so killByRunID recognises them by the run's id in their environment.
func killByRunID(runID string) {
	for range 100 {
		found := false
		for _, pid := range host.PIDs() {
			if id, ok := host.Environ(pid, runIDVariable); ok && id == runID && pid != os.Getpid() {
				if p, ok := host.Read(pid); ok && p.State != 'Z' {
					found = true
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		if !found {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// signal passes a signal on to the experiment. An agent that can writes its data to disk first.
func (c *child) signal(s syscall.Signal) {
	c.send.Encode(supervisorCommand{Signal: int(s), Drain: true})
}

// end ends all processes of the experiment: first a drain, then TERM, and KILL after grace. If grace is 0, it sends
// KILL at once.
func (c *child) end(grace time.Duration) {
	c.send.Encode(supervisorCommand{End: true, Grace: grace})
}
