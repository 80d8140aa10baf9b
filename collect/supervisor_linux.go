package collect

import (
	"encoding/gob"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/collect/host"
)

// File descriptors of a supervisor, after the standard ones.
const (
	supervisorControl = 3
	supervisorStatus  = 4
	supervisorLock    = 5
	supervisorTyped   = 6 // present if the specification's Typed is true
)

// A program with this package can become its own supervisor, before main runs. If main had to call a function for that,
// a program without the call would start itself over and over.
func init() {
	if len(os.Args) == 1 && os.Args[0] == supervisorName {
		os.Exit(keep())
	}
}

type supervisor struct {
	spec   supervisorSpec
	status *gob.Encoder
	main   int           // pid of the experiment
	exited chan struct{} // closed when main was reaped
	gone   chan struct{} // closed when all processes of the run have ended
	exit   treeExit      // valid once exited is closed
	// restore resets the mode of the user's terminal if a killed collector has left it changed.
	restore func()
}

// keep does the whole work of a supervisor. keep runs on the main thread, which lives as long as the process: the
// parent-death signal of the experiment depends on the thread that started it.
func keep() int {
	runtime.LockOSThread()
	// A signal to the collector's whole process group is meant for the collector, which then tells the supervisor what
	// to do. The supervisor catches such signals rather than ignore them, since ignored signals stay ignored in the
	// experiment.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1,
		unix.SIGUSR2, unix.SIGPIPE)
	unix.CloseOnExec(supervisorControl)
	unix.CloseOnExec(supervisorStatus)
	unix.CloseOnExec(supervisorLock)
	k := &supervisor{
		status: gob.NewEncoder(os.NewFile(supervisorStatus, "status")),
		exited: make(chan struct{}), gone: make(chan struct{}), restore: func() {},
	}
	control := gob.NewDecoder(os.NewFile(supervisorControl, "control"))
	if err := control.Decode(&k.spec); err != nil {
		return 1 // the collector died before it sent the command
	}
	if k.spec.Typed {
		unix.CloseOnExec(supervisorTyped)
		k.restore = restorer(supervisorTyped)
	}
	if k.spec.Cleanup != "" {
		defer os.RemoveAll(k.spec.Cleanup)
	}
	if err := k.start(); err != nil {
		k.status.Encode(supervisorReport{Error: err.Error()})
		return 1
	}
	k.status.Encode(supervisorReport{Started: k.main})
	commands := make(chan supervisorCommand)
	go func() {
		defer close(commands)
		for {
			var c supervisorCommand
			if err := control.Decode(&c); err != nil {
				return // the collector has died or is broken
			}
			commands <- c
		}
	}()
	exit := k.watch(commands)
	exit.CPUNS = int64(processCPU())
	k.status.Encode(supervisorReport{Ended: true, Exit: exit})
	return 0
}

func (k *supervisor) start() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if k.spec.Terminal {
		attributes = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1, Pdeathsig: syscall.SIGKILL}
	}
	pid, err := syscall.ForkExec(k.spec.Path, k.spec.Argv, &syscall.ProcAttr{
		Dir: k.spec.Dir, Env: k.spec.Env, Files: []uintptr{0, 1, 2},
		Sys: attributes,
	})
	if err != nil {
		return err
	}
	k.main = pid
	// If the supervisor kept a stream open, the collector would not see the end of the experiment's output.
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for fd := range 3 {
			unix.Dup3(int(null.Fd()), fd, 0)
		}
		null.Close()
	}
	go k.reap()
	return nil
}

// reap collects every child process that has ended. The supervisor is the reaper of the tree, so every process becomes
// its child in the end, and "no children" means that all processes of the run have ended.
func (k *supervisor) reap() {
	defer close(k.gone)
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return
		case pid == k.main && (ws.Exited() || ws.Signaled()):
			if ws.Signaled() {
				k.exit.Signal = int(ws.Signal())
				k.exit.Code = 128 + k.exit.Signal
			} else {
				k.exit.Code = ws.ExitStatus()
			}
			close(k.exited)
		}
	}
}

// watch follows the experiment and the collector until all processes of the run have ended.
func (k *supervisor) watch(commands <-chan supervisorCommand) treeExit {
	left := 0
	ending := make(chan struct{})
	kill := make(chan struct{}, 1)
	end := func(grace time.Duration) {
		if !isClosed(ending) {
			close(ending)
			go k.endAll(grace, kill)
		} else if grace == 0 { // the processes are already being ended, and now without grace
			select {
			case kill <- struct{}{}:
			default:
			}
		}
	}
	exited := k.exited
	var settled <-chan time.Time
	var hopeless <-chan time.Time
	for {
		select {
		case <-k.gone:
			exit := k.exit
			exit.LeftRunning = left
			return exit
		case <-hopeless:
			exit := treeExit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL)}
			if isClosed(k.exited) {
				exit = k.exit
			}
			exit.LeftRunning, exit.Stuck = left, len(k.running())
			return exit
		case <-exited:
			k.status.Encode(supervisorReport{Exited: true})
			exited, settled = nil, time.After(settleTime)
		case <-settled:
			if !isClosed(ending) { // otherwise the signal ends the experiment too
				left = len(k.running())
			}
			end(orphanGrace)
			hopeless = time.After(orphanGrace + drainTime + workTime + killTime)
		case c, ok := <-commands:
			switch {
			case !ok:
				commands = nil
				k.restore()
				end(orphanGrace)
				if hopeless == nil {
					hopeless = time.After(orphanGrace + drainTime + workTime + killTime)
				}
			case c.End:
				end(c.Grace)
				if hopeless == nil {
					hopeless = time.After(c.Grace + drainTime + workTime + killTime)
				}
			case c.Drain: // a drain takes a while
				go k.forward(c)
			case c.Signal != 0:
				k.forward(c) // signals are passed on in order
			}
		}
	}
}

// forward passes a signal on to the experiment's process group, as a terminal would.
func (k *supervisor) forward(c supervisorCommand) {
	if c.Drain {
		k.drain()
	}
	if !isClosed(k.exited) { // otherwise the experiment's process id may belong to another process
		syscall.Kill(-k.main, syscall.Signal(c.Signal))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drain requests a drain from the agents.
func (k *supervisor) drain() {
	waitForDrain(k.spec.Spool, drainTime, k.gone)
}

// endAll ends every process of the run: by a drain, TERM, and KILL.
func (k *supervisor) endAll(grace time.Duration, kill <-chan struct{}) {
	if grace > 0 {
		k.drain()
		for _, pid := range k.running() {
			syscall.Kill(pid, syscall.SIGTERM)
		}
		select {
		case <-k.gone:
			return
		case <-kill:
		case <-time.After(grace):
		}
	}
	// This is repeated, since a process may have forked after the list was made.
	for {
		for _, pid := range k.running() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-k.gone:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// running lists the living processes of the run.
func (k *supervisor) running() []int {
	var out []int
	for _, p := range host.Descendants(os.Getpid()) {
		if p.State != 'Z' && p.State != 'X' {
			out = append(out, p.PID)
		}
	}
	return out
}
