// Package pickle reads data-only Python pickles, protocols 0 to 5, as a stream.
//
// The package knows None, booleans, integers, floats, strings, bytes, tuples, lists and dictionaries, and nothing else.
// The package refuses every opcode that could name, build or fetch anything more (GLOBAL, REDUCE, BUILD, PERSID, …), by
// name and byte offset. Package pickle never constructs or runs anything, so a hostile file can at worst be refused.
//
// # Model
//
// A pickle is a program for a stack machine that builds containers bottom-up. When a list or dictionary becomes an
// element of another one, it is complete, unless the data contains itself. The [Decoder] runs that machine over 16-byte
// [Value]s without pointers. The Decoder passes each batch of elements to a [Builder], which keeps what it needs and
// returns a small [Ref] that stands for the container from then on. So a builder that knows its schema turns two
// million dictionaries into column appends, and no tree of Go objects ever exists.
//
// A container that has been fetched from the memo cannot grow any more. Only data that contains itself needs a
// container to grow after a fetch, and such data is refused. So values form a graph without cycles, shared parts are
// shared, and nothing here or in a builder recurses over input. [Limits] bounds depth, string lengths, elements and
// memory.
//
// Note: two other designs do not work. Decoding into any values, as the public Go decoders do, produces garbage of
// 4 to 20 times the file. With Go slices for Python lists, it also loses lists that are shared before they are
// filled. Passing each container to the builder once, when its parent takes it, makes builders simpler, but holds
// all elements of every list until then. Pickles by torch's C++ code put a whole trace of millions of events into
// one batch.
package pickle
