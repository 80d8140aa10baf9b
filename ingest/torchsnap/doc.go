// Package torchsnap reads the memory snapshots of PyTorch's CUDA caching allocator, of every era, into columns.
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
// Unknown keys are ignored. A known key with a value of the wrong type is skipped and named in [Snapshot].Odd. If an
// event means nothing without the skipped value, the event's action is unknown. If a list of segments cannot be used,
// the events have no list.
package torchsnap
