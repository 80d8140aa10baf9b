package collect

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// teeTime limits the wait for the end of the output after all processes of the run have ended.
const teeTime = 2 * time.Second

// An output is an experiment's output: two streams, each with a log.
type output struct{ stdout, stderr stream }

// A stream is one of an experiment's outputs. The experiment writes to theirs, and the tee reads the other end.
type stream struct {
	theirs *os.File
	tee    *tee
}

// startOutput opens the streams and logs of an experiment. If terminal is not nil, the streams are that session's
// terminals.
func (r *recording) startOutput(terminal *session) (*output, error) {
	stdout, stderr, err := terminal.streams()
	if err != nil {
		return nil, err
	}
	out, err := startTee(filepath.Join(r.dir, StdoutFile), stdout.ours, r.e.Stdout, r.secrets)
	if err != nil {
		stdout.close()
		stderr.close()
		return nil, err
	}
	errs, err := startTee(filepath.Join(r.dir, StderrFile), stderr.ours, r.e.Stderr, r.secrets)
	if err != nil {
		stderr.close()
		stdout.theirs.Close()
		return nil, errors.Join(err, out.close(nil))
	}
	return &output{stream{stdout.theirs, out}, stream{stderr.theirs, errs}}, nil
}

// handOver closes the ends to which the experiment writes, after it has inherited them. The logs then end when no
// process holds these ends.
func (o *output) handOver() {
	o.stdout.theirs.Close()
	o.stderr.theirs.Close()
}

// close ends the logs. If a process outside the run holds a stream open, close waits at most teeTime.
func (o *output) close() error {
	limit := make(chan struct{})
	timer := time.AfterFunc(teeTime, func() { close(limit) })
	defer timer.Stop()
	return errors.Join(o.stdout.tee.close(limit), o.stderr.tee.close(limit))
}

// lastError returns the last line that the experiment wrote to its standard error.
func (o *output) lastError() string { return o.stderr.tee.last.String() }
