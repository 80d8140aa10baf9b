package grouping

import (
	"fmt"
	"path"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// stackDepth is how many frames tell stacks apart where no depth is given: a whole stack is thirty frames and more.
const stackDepth = 3

// FramesOf are a rank's stacks by their id, innermost frame first.
func FramesOf(in *schemas.Tables, rank int32) map[int64][]schemas.StackFrame {
	frames := map[int64][]schemas.StackFrame{}
	for _, f := range in.Stacks {
		if f.Rank == rank {
			frames[f.Stack] = append(frames[f.Stack], f)
		}
	}
	return frames
}

// StackText names a stack by its innermost frames, what lies between the script's own left out; empty where there is
// none. With lines, a file is shown by the last two names of its path. Without them the text is made to be matched: it
// stays the same when code above a call grows or shrinks, and when a script or an environment lies in another place.
func StackText(frames []schemas.StackFrame, depth int, lines bool) string {
	if depth == 0 {
		depth = stackDepth
	}
	var words []string
	for _, f := range frames {
		if isPlumbing(f) {
			continue
		}
		if len(words) == depth {
			break
		}
		if lines {
			words = append(words, fmt.Sprintf("%s %s:%d", f.Function, path.Join(path.Base(path.Dir(f.File)),
				path.Base(f.File)), f.Line))
		} else {
			words = append(words, f.Function+" "+portable(f.File))
		}
	}
	return strings.Join(words, " < ")
}

// portable is what a file is called wherever it lies: within its environment if it is installed, else by its name.
func portable(file string) string {
	for _, folder := range []string{"/site-packages/", "/dist-packages/"} {
		if i := strings.LastIndex(file, folder); i >= 0 {
			return file[i+len(folder):]
		}
	}
	return path.Base(file)
}

// isPlumbing reports whether a frame says nothing of who asked: two or three lie between every module's call and its
// forward, one under every call in a device context, and our own where they wrap a function.
func isPlumbing(f schemas.StackFrame) bool {
	switch {
	case strings.HasSuffix(f.File, "torch/nn/modules/module.py"):
		return f.Function == "inner" || strings.HasSuffix(f.Function, "_call_impl")
	case strings.HasSuffix(f.File, "torch/utils/_device.py"):
		return f.Function == "__torch_function__"
	}
	return isOurs(f.File)
}

// isOurs reports whether a file is the agent's or the phantom GPU's: collect writes them into a folder of its own,
// dpsight- and a number, for each run. What a script has in a folder or file of such a name is the script's.
func isOurs(file string) bool {
	i := strings.LastIndex(file, "/dpsight-")
	if i < 0 {
		return false
	}
	number, rest, _ := strings.Cut(file[i+len("/dpsight-"):], "/")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	folder, name := path.Split(rest)
	return strings.HasPrefix(folder, "python/dpsight/") || rest == "python/sitecustomize.py" || folder == "" &&
		strings.HasPrefix(name, "phantom_")
}
