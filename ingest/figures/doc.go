// Package figures reads what other tools wrote about a run: figures at moments, without blocks. The package knows the
// results of the profilers that dpsight replaces, and traces and memory timelines of torch.profiler. [KindOf]
// recognises a file by its first bytes, [Read] returns the runs in it.
//
// A figure that a file lacks stays nil. An impossible figure, such as a component above the peak, is left out and named
// in [Run.Notes].
package figures
