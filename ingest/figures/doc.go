// Package figures reads files in which other tools wrote figures about a run, at certain moments and without blocks.
// Package figures knows the results of the profilers that dpsight replaces, and traces and memory timelines of
// torch.profiler. [KindOf] recognises a file by its first bytes, and [Read] returns the runs in a file.
//
// A figure that a file lacks stays nil. The package leaves out an impossible figure, such as a component above the
// peak, and adds a note to [Run.Notes].
package figures
