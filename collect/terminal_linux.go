package collect

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// A session is the terminal of an experiment: one pseudoterminal for its input and output and one for its errors, of
// the size of the user's terminal. The two separate terminals allow each stream its own log.
type session struct {
	user          *os.File // terminal on which output is shown
	input         *os.File // terminal on which the user types; nil if input is no terminal or another job's
	stdout        endpoints
	stderr        endpoints
	mu            sync.Mutex
	before        *unix.Termios // previous mode of the user's terminal; nil if unchanged
	resized       chan os.Signal
	paused        chan os.Signal // gets a signal on Ctrl-Z
	stop, stopped *os.File       // a pipe that is closed to stop reading the input
	done          sync.WaitGroup
}

// endpoints are the two ends of one stream: ours is read, and the experiment writes to theirs.
type endpoints struct{ ours, theirs *os.File }

func (p endpoints) close() {
	for _, f := range []*os.File{p.ours, p.theirs} {
		if f != nil {
			f.Close()
		}
	}
}

// newSession opens an experiment's terminals. user is the terminal on which output is shown.
func newSession(user, stdin *os.File) (*session, error) {
	s := &session{user: user, resized: make(chan os.Signal, 1), paused: make(chan os.Signal, 1)}
	// newSession catches SIGTSTP before the experiment starts: otherwise Ctrl-Z would stop only this process, while the
	// experiment would continue.
	signal.Notify(s.paused, syscall.SIGTSTP)
	var err error
	if s.stopped, s.stop, err = os.Pipe(); err != nil {
		return nil, err
	}
	for _, pair := range []*endpoints{&s.stdout, &s.stderr} {
		if pair.ours, pair.theirs, err = pty.Open(); err == nil {
			err = asWritten(pair.theirs)
		}
		if err != nil {
			s.close()
			return nil, err
		}
	}
	if stdin != nil && isTerminal(stdin) && inForeground(stdin) {
		s.input = stdin
	}
	s.resize()
	return s, nil
}

// asWritten makes a pseudoterminal deliver output unchanged, so that a log is the same as without a terminal. The
// user's terminal expands each line end to two characters.
func asWritten(f *os.File) error {
	mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	mode.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, mode)
}

// inForeground reports whether this job has the terminal. A background job that read from it would be stopped.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// begin starts passing on what the user types, and changes of the terminal's size.
func (s *session) begin() {
	signal.Notify(s.resized, syscall.SIGWINCH)
	s.done.Go(func() {
		for range s.resized {
			s.resize()
		}
	})
	if s.input == nil {
		return
	}
	s.take()
	s.done.Go(s.pass)
}

// pass passes on what the user types, until the session ends.
func (s *session) pass() {
	fds := []unix.PollFd{{Fd: int32(s.input.Fd()), Events: unix.POLLIN}, {Fd: int32(s.stopped.Fd()), Events: unix.POLLIN}}
	buf := make([]byte, 4096)
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if fds[1].Revents != 0 {
			return
		}
		if fds[0].Revents == 0 {
			continue
		}
		n, err := unix.Read(int(s.input.Fd()), buf)
		if n > 0 {
			if _, err := s.stdout.ours.Write(buf[:n]); err != nil {
				return
			}
		}
		if n <= 0 && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}

func (s *session) resize() {
	if size, err := pty.GetsizeFull(s.user); err == nil {
		pty.Setsize(s.stdout.ours, size)
		pty.Setsize(s.stderr.ours, size)
	}
}

// passing returns the mode in which a terminal delivers each key at once and without echo. The experiment's own
// terminal handles lines and echo, as its programs set it. Keys for signals keep their effect: Ctrl-C goes to the
// collector, which passes it on.
func passing(mode unix.Termios) unix.Termios {
	mode.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	mode.Iflag &^= unix.ICRNL
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	return mode
}

// restorer remembers the mode of a terminal. The returned function restores that mode, unless a program other than the
// collector has changed the mode since, as a shell does after a job was killed.
func restorer(fd int) func() {
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	return func() {
		if now, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil && *now == passing(*before) {
			signal.Ignore(unix.SIGTTOU) // this signal would stop a background process
			unix.IoctlSetTermios(fd, unix.TCSETS, before)
		}
	}
}

// take puts the user's terminal into the mode for passing on what the user types.
func (s *session) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.input == nil || s.before != nil || !inForeground(s.input) {
		return
	}
	fd := int(s.input.Fd())
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return
	}
	raw := passing(*mode)
	if unix.IoctlSetTermios(fd, unix.TCSETS, &raw) == nil {
		s.before = mode
	}
}

// giveBack restores the user's terminal.
func (s *session) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		unix.IoctlSetTermios(int(s.input.Fd()), unix.TCSETS, s.before)
		s.before = nil
	}
}

// close ends the session. The tees close the ends that are read.
func (s *session) close() {
	signal.Stop(s.paused)
	signal.Stop(s.resized)
	close(s.resized)
	s.stop.Close()
	s.done.Wait()
	s.stopped.Close()
	s.giveBack()
	s.stdout.close()
	s.stderr.close()
}

// pause stops the experiment and this process, as Ctrl-Z at its own terminal would, until the shell continues both.
func (s *session) pause(c *child) {
	c.send.Encode(supervisorCommand{Signal: int(unix.SIGSTOP)})
	s.giveBack()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	unix.Kill(unix.Getpid(), unix.SIGSTOP)
	<-continued // this thread may run for a moment before the stop takes effect
	signal.Stop(continued)
	s.take()
	s.resize()
	c.send.Encode(supervisorCommand{Signal: int(unix.SIGCONT)})
}

// streams returns the pipes for the experiment's output, or the session's terminals.
func (s *session) streams() (stdout, stderr endpoints, err error) {
	if s != nil {
		return s.stdout, s.stderr, nil
	}
	if stdout.ours, stdout.theirs, err = os.Pipe(); err != nil {
		return stdout, stderr, err
	}
	if stderr.ours, stderr.theirs, err = os.Pipe(); err != nil {
		stdout.close()
	}
	return stdout, stderr, err
}
