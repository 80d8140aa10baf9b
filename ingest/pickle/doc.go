// Package pickle reads data-only Python pickles, protocols 0 to 5, as a stream.
//
// The package knows only None, booleans, integers, floats, strings, bytes, tuples, lists and dictionaries. Package
// pickle refuses opcodes that could name, build or fetch anything else (GLOBAL, REDUCE, BUILD, PERSID, …), with an
// error that has the opcode's name and byte offset. Package pickle constructs no Python objects and runs no code from
// the file, so a hostile file can at worst be refused.
//
// # Model
//
// A pickle is a program for a stack machine that builds containers bottom-up. When a list or dictionary becomes an
// element of another container, it is complete, unless the data contains itself. The [Decoder] runs that machine over
// 16-byte [Value]s without pointers. The Decoder passes each batch of elements to a [Builder], which keeps what it
// needs and returns a small [Ref] that stands for the container from then on. So a builder that knows its schema turns
// two million dictionaries into column appends, and no tree of Go objects ever exists.
//
// A container that has been fetched from the memo cannot grow any more. Only data that contains itself needs a
// container to grow after a fetch, and such data is refused. So values form a graph without cycles, shared parts are
// shared, and nothing here or in a builder recurses over input. [Limits] bounds depth, string lengths, elements and
// memory.
//
// Two other designs do not work well. Decoding into values of type any, as the public Go decoders do, produces garbage
// of 4 to 20 times the file's size. With Go slices for Python lists, it also loses lists that are shared before they
// are filled. Passing each container to the builder only when its parent takes it would make builders simpler, but
// would hold all elements of each list until then. Pickles by torch's C++ code put a whole trace of millions of events
// into one batch.
package pickle
