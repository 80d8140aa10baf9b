package collect

import (
	"context"
	"os"
	"syscall"
	"time"
)

// follow passes on signals, enforces the time limit and reports progress, until all processes of the experiment have
// ended. terminal may be nil.
func (r *recording) follow(ctx context.Context, c *child, s *samplers, terminal *session) {
	grace := r.e.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	var limit <-chan time.Time
	if r.e.Timeout > 0 {
		timer := time.NewTimer(r.e.Timeout)
		defer timer.Stop()
		limit = timer.C
	}
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	steps := newStepCounter(r.spool)
	signals, cancelled, exited := r.e.Signals, ctx.Done(), c.exited
	var paused chan os.Signal // signals of Ctrl-Z
	if terminal != nil {
		paused = terminal.paused
	}
	for {
		select {
		case <-c.ended:
			return
		case <-exited:
			// The supervisor ends the processes that are still running. A time limit that is reached meanwhile says
			// nothing about the experiment.
			limit, exited = nil, nil
		case <-limit:
			limit = nil
			r.why.timeout = r.e.Timeout
			c.end(grace)
		case <-cancelled:
			cancelled = nil
			r.why.cancelled = true
			c.end(grace)
		case sig, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			r.onSignal(sig, c)
		case <-paused:
			terminal.pause(c)
		case <-ticker.C:
			r.steps = steps.read()
			p := Progress{Elapsed: time.Since(r.started), Steps: r.steps, Planned: r.e.plannedSteps()}
			if s.gpu != nil {
				if used := s.gpu.used.Load(); used >= 0 {
					p.UsedBytes = &used
				}
			}
			if r.held != nil {
				if held := r.held(); held > 0 {
					p.ReservedBytes = &held
				}
			}
			r.progress(p)
		}
	}
}

func (r *recording) onSignal(s os.Signal, c *child) {
	n, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	r.why.signal = s
	if r.signals++; r.signals > 1 {
		c.end(0)
		return
	}
	c.signal(n)
}
