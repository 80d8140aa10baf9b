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

// StackText names a stack by its innermost frames outside of torch and of C++, from the line that called into them on;
// by torch's own where there are no others, and then by C++ ones. It is empty where there is none. With lines, a file
// is shown by the last two names of its path. Without them the text is made to be matched: it stays the same when code
// above a call grows or shrinks, and when a script or an environment lies in another place.
func StackText(frames []schemas.StackFrame, depth int, lines bool) string {
	if depth == 0 {
		depth = stackDepth
	}
	for _, kept := range []func(schemas.StackFrame) bool{isProgram, isPython, isNative} {
		if text := stackText(frames, depth, lines, kept); text != "" {
			return text
		}
	}
	return ""
}

// FullStackText names a stack by its depth innermost frames, torch's and C++ ones too; depth 0 = all of them.
func FullStackText(frames []schemas.StackFrame, depth int) string {
	if depth == 0 {
		depth = len(frames)
	}
	return stackText(frames, depth, true, func(f schemas.StackFrame) bool { return !isOurs(f.File) })
}

func stackText(frames []schemas.StackFrame, depth int, lines bool, kept func(schemas.StackFrame) bool) string {
	var words []string
	for _, f := range frames {
		if !kept(f) {
			continue
		}
		if len(words) == depth {
			break
		}
		switch {
		case !strings.HasSuffix(f.File, ".py") && !lines:
			words = append(words, f.Function)
		case lines:
			words = append(words, fmt.Sprintf("%s %s:%d", f.Function, lastTwo(f.File), f.Line))
		default:
			words = append(words, f.Function+" "+portable(f.File))
		}
	}
	return strings.Join(words, " < ")
}

// lastTwo is a path's last two names.
func lastTwo(file string) string {
	if folder := path.Dir(file); folder != "." && folder != "/" {
		return path.Join(path.Base(folder), path.Base(file))
	}
	return path.Base(file)
}

// isProgram reports whether a frame is of the program: Python, and neither torch's nor code that torch wrote.
func isProgram(f schemas.StackFrame) bool {
	if !isPython(f) || strings.HasPrefix(f.File, "<eval_with_key>") || strings.HasPrefix(f.File, "<frozen ") {
		return false
	}
	file := "/" + f.File
	for _, folder := range torchFolders {
		if strings.Contains(file, folder) {
			return false
		}
	}
	return true
}

// torchFolders are where torch's own Python lies: installed, in a checkout of its own, or written by its compiler.
var torchFolders = []string{"/site-packages/torch/", "/dist-packages/torch/", "/pytorch/torch/",
	"/site-packages/functorch/", "/dist-packages/functorch/", "/torchinductor_"}

// isPython reports whether a frame is of Python and says who asked.
func isPython(f schemas.StackFrame) bool {
	return (strings.HasSuffix(f.File, ".py") || strings.HasPrefix(f.File, "<")) && !isPlumbing(f)
}

// isNative reports whether a C++ frame tells who asked for memory. Frames of the unwinder and of the allocator do
// not.
func isNative(f schemas.StackFrame) bool {
	for _, part := range []string{"CapturedTraceback", "unwind", "CachingAllocator", "gather_with_cpp"} {
		if strings.Contains(f.Function, part) {
			return false
		}
	}
	return f.Function != "" && !isOurs(f.File) && !isPlumbing(f)
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

// isOurs reports whether a file is the agent's or the phantom GPU's: collect writes them into a folder of its own for
// each run, [schemas.ScratchPrefix] and a number; older recordings have dpsight- and a number. What a script has
// in a folder or file of such a name is the script's.
func isOurs(file string) bool {
	i := strings.LastIndex(file, "/dpsight-")
	if i < 0 {
		return false
	}
	folder, rest, _ := strings.Cut(file[i+1:], "/")
	number, current := strings.CutPrefix(folder, schemas.ScratchPrefix)
	if !current {
		number = strings.TrimPrefix(folder, "dpsight-")
	}
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	within, name := path.Split(rest)
	return strings.HasPrefix(within, "python/dpsight/") || rest == "python/sitecustomize.py" || within == "" &&
		strings.HasPrefix(name, "phantom_")
}
