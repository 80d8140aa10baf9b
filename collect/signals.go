package collect

import (
	"os"
	"os/signal"
	"syscall"
)

// Interrupts catches the signals that ask a program to stop, for [Experiment.Signals]. Call stop to restore their usual
// effect.
func Interrupts() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	return c, func() { signal.Stop(c) }
}
