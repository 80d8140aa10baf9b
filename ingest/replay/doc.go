// Package replay turns the events of torch's CUDA caching allocator into blocks, to the byte.
//
// The trace gives the address and the requested size of every allocation. The allocator counts blocks, which may be
// larger than the request. The trace and the allocator's rules give the difference: a request is rounded up, the free
// block at the traced address is taken, and the remainder is split off or, in the large pool, stays as slack. The
// replay does not simulate which free block the allocator chose, since the address tells it. So [Run] is one
// deterministic pass. The counters of [Run]'s result can be compared with torch's own at every checkpoint
// ([Result.Check]), and its blocks with the allocator's own list ([Result.Final]).
//
// # Recording that began late
//
// A block that was in use before event 1 is either given back by an event or still in the allocator's list after
// the last one. So undoing the events from that list backwards ([rewind]) gives every block and segment before
// event 1, and the replay begins with them. Blocks that were alive then are untraced, and count from seq 0 on.
//
// If a block was made before event 1 and given back later, only its surroundings tell its size. The block ends where
// its neighbour begins if less room lies between than the smallest free block needs. The block also ends where a later
// alloc finds a free block just behind it, since free neighbours merge. Otherwise [Alloc].Open says by how many bytes
// the block may exceed its rounded request: at most 1 MiB, which torch does not split off. Blocks with an Open size
// bound the peak ([Result].PeakHigh).
//
// Without a last list, a block is untraced if its free is seen but not its alloc. Such a block lies in memory that no
// event reserved. Block boundaries are unknown there, so blocks get their rounded size. A free in memory that was
// reserved while recording, but with no alloc to explain it, is a sign of lost events. Signs of lost events do not stop
// the replay: the replay counts them, and [Anomalies.Reason] describes them.
//
// # Gaps
//
// Recording may pause and go on ([Run]). One event stands for all that happened during the pause. At that event, the
// blocks become those in the allocator's own list ([Replay.Resume]), so everything after it is as exact as before. A
// block of the list is identified with an earlier one by address, size and stream. The totals do not depend on this.
//
// # Counters
//
// allocated falls at free_requested. active and requested fall at free_completed. The two moments differ for blocks
// that another stream still uses (record_stream). allocated is always the sum of the live blocks of [Result.Allocs]
// ([Alloc.LiveAt]).
package replay
