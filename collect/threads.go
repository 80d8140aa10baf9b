package collect

import "runtime"

// FewThreads makes Go use few threads while the given number of experiments are recorded at the same time. The
// collector wakes a hundred times a second for a few microseconds of work. On a machine with many cores, each wake also
// wakes idle schedulers, which costs more than the work. restore sets the previous number of threads again.
func FewThreads(experiments int) (restore func()) {
	threads := 2
	if experiments > 1 {
		threads = min(2*experiments, runtime.NumCPU())
	}
	usual := runtime.GOMAXPROCS(threads)
	return func() { runtime.GOMAXPROCS(usual) }
}
