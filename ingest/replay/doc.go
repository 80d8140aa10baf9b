// Package replay reconstructs the blocks of torch's CUDA caching allocator from its events. Unless the trace is
// incomplete, sizes are exact to the byte.
//
// The trace gives the address and the requested size of every allocation. The allocator counts blocks, which may be
// larger than the request. The difference follows from the trace and the allocator's rules: the allocator rounds a
// request up, takes the free block at the traced address, and splits off the remainder or, in the large pool, keeps it
// as slack. The replay does not simulate which free block the allocator chose, since the address shows it. So [Run] is
// a single deterministic pass. A caller can compare the counters of the result with torch's counters at each checkpoint
// ([Result.Check]), and the blocks with the allocator's own list ([Result.Final]).
//
// # Recording that began late
//
// A block that was in use before event 1 is either freed by an event or still in the allocator's list after the last
// event. So undoing the events backwards from that list ([rewind]) gives all blocks and segments before event 1, and
// the replay begins with these. Blocks that were live before event 1 are untraced, and count from seq 0 on.
//
// If a block was made before event 1 and freed later, only its surroundings show its size. The block ends where its
// neighbour begins if there is less room between them than the smallest free block needs. The block also ends where a
// later alloc finds a free block just after it, since free neighbours merge. Otherwise [Alloc].Open says by how many
// bytes the block may exceed its rounded request: at most 1 MiB, which torch does not split off. Because of these
// blocks, the peak is known only within bounds ([Result].PeakHigh).
//
// Without a last list, a block is untraced if the trace has its free but not its alloc, and the block lies in memory
// that no event reserved. The boundaries of blocks in this memory are unknown, so blocks get their rounded size. A free
// without an alloc in memory that was reserved while recording is a sign of lost events. Signs of lost events do not
// stop the replay: the replay counts them, and [Anomalies.Reason] describes them.
//
// # Gaps
//
// Recording may pause and continue ([Run]). One event stands for a whole pause of recording. At the event of a pause,
// the replay takes the blocks from the allocator's own list ([Replay.Resume]), so all later values are as exact as
// before. A block in the list counts as the same block as before the pause if address, size and stream are the same.
// The totals do not depend on which blocks count as the same.
//
// # Counters
//
// allocated falls at free_requested. active and requested fall at free_completed. The two moments differ for blocks
// that another stream still uses (record_stream). allocated is always the sum of the live blocks of [Result.Allocs]
// ([Alloc.LiveAt]).
package replay
