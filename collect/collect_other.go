//go:build !linux

package collect

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

// Run returns an error, since recording needs Linux: the phantom GPU, and builds of torch for CUDA that can be
// recorded, exist only there.
func Run(context.Context, Experiment) (*Result, error) {
	return nil, &UsageError{fmt.Sprintf("dpsight records experiments only on Linux, and this is %s", runtime.GOOS),
		containerHint}
}

// Running reports whether a run is still being recorded. On systems other than Linux, no run can be.
func Running(dir string) bool { return false }

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

func signalName(n int) string { return fmt.Sprintf("signal %d", n) }

func signalText(s os.Signal) string { return s.String() }
