package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Process has the kernel's facts about one process.
type Process struct {
	PID    int
	Parent int
	State  byte  // 'Z' means a zombie
	CPUNS  int64 // user and system time, without ended children
}

// ticksPerSecond is USER_HZ, which is 100 on every architecture that Linux runs CUDA on.
const ticksPerSecond = 100

// Read reads the facts about a process. ok is false if it has ended.
func Read(pid int) (p Process, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	// The second field is the program's name in brackets, which may itself contain brackets and spaces.
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return p, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 13 {
		return p, false
	}
	p.PID, p.State = pid, f[0][0]
	p.Parent, _ = strconv.Atoi(f[1])
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	p.CPUNS = (user + system) * (1e9 / ticksPerSecond)
	return p, true
}

// RSSBytes returns a process's resident memory, or 0 if it has ended.
func RSSBytes(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// Descendants lists all living descendants of a process, including zombies, but not the process itself. A process whose
// parent has died counts if its new parent is in the tree.
func Descendants(root int) []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]Process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := Read(pid); ok {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	var out []Process
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		out = append(out, children[queue[0]]...)
		for _, c := range children[queue[0]] {
			queue = append(queue, c.PID)
		}
	}
	return out
}

// Command returns a process's command line, or nothing if it has ended. It may contain secrets.
func Command(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
}

// LoadedTorch reports whether a process has loaded torch's library.
func LoadedTorch(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	return err == nil && (bytes.Contains(b, []byte("/libtorch_cpu.so")) || bytes.Contains(b, []byte("/libtorch.so")))
}

// OpenedGPU reports whether a process has a GPU's device file open, as a process with a CUDA context does.
func OpenedGPU(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if digits, ok := strings.CutPrefix(target, "/dev/nvidia"); ok && digits != "" && digits[0] >= '0' &&
			digits[0] <= '9' {
			return true
		}
	}
	return false
}

// Environ returns a variable from the environment with which a process was started.
func Environ(pid int, name string) (string, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false
	}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value), true
		}
	}
	return "", false
}

// PIDs returns the ids of all processes that /proc shows.
func PIDs() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
