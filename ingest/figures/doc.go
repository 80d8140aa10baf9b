// Package figures reads what other tools wrote of a run: figures at moments, and no blocks. It knows the results of the
// profilers that dpsight replaces, and traces and memory timelines of torch.profiler. [KindOf] tells a file by how it
// begins, [Read] gives the runs in it.
//
// A figure that a file does not have stays nil. One that cannot be, such as a component above the peak, is kept out and
// named in [Run.Notes].
package figures
