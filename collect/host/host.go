// Package host reads the machine and the processes of a run, through /proc.
package host

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Facts describes this machine. What cannot be read stays zero. Facts leaves out the user's name on purpose.
func Facts() schemas.Host {
	h := schemas.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	h.Name, _ = os.Hostname()
	h.CPU = field("/proc/cpuinfo", "model name")
	if kb, _, ok := strings.Cut(field("/proc/meminfo", "MemTotal"), " "); ok {
		if n, err := strconv.ParseInt(kb, 10, 64); err == nil {
			h.MemoryBytes = n * 1024
		}
	}
	return h
}

// field is the value of the first line "name : value" of a file.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
