package collect

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func signalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

func signalText(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		return signalName(int(n))
	}
	return s.String()
}
