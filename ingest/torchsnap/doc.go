// Package torchsnap reads the memory snapshots of PyTorch's CUDA caching allocator into columns. Package torchsnap
// reads the formats of all versions of torch, called eras here.
//
// A snapshot is the dictionary that torch.cuda.memory._snapshot() returns, pickled: by _dump_snapshot, by torch's
// C++ code, or by the recording agent into its journal. The eras differ in:
//
//	bare list of segments            before traces existed: no events
//	no time_us                       [schemas.EventColumns].TimeNS is 0
//	block history[0].real_size       stands for requested_size
//	no block address                 blocks follow each other from the segment's address
//	user_defined, annotate           events whose text is in [Snapshot].Metadata
//	allocator_settings, external_annotations, compile_context, user_metadata, pool_id, internal_metadata
//	                                 used where present
//	frames                           absent, empty, Python's, or C++ ones too
//	host_segments, host_traces       pinned host memory: not read
//
// The package ignores unknown keys. Package torchsnap skips a known key with a value of the wrong type, and names it in
// [Snapshot].Odd. If an event means nothing without the skipped value, the event's action is unknown. If the list of
// segments cannot be used, the snapshot has only events.
package torchsnap
