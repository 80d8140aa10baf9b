package collect

import "runtime"

// FewThreads has Go run on few threads while that many experiments are recorded at a time. The collector wakes a
// hundred times a second to do a few microseconds' work; on a machine of many cores each wake stirs idle schedulers on
// the others, which costs more than the work.
func FewThreads(experiments int) (restore func()) {
	threads := 2
	if experiments > 1 {
		threads = min(2*experiments, runtime.NumCPU())
	}
	usual := runtime.GOMAXPROCS(threads)
	return func() { runtime.GOMAXPROCS(usual) }
}
