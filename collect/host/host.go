// Package host reads facts about the machine, and about the processes of a run, from /proc.
package host

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Facts describes this machine. Facts that cannot be read stay zero. The user's name is left out on purpose.
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

// field returns the value of the first line "name : value" in a file.
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
