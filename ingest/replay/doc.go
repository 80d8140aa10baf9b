// Package replay turns the events of torch's CUDA caching allocator into blocks, to the byte.
//
// The trace gives the address and the requested size of every allocation; the allocator counts blocks, which are
// larger. How much larger follows from the trace and the allocator's rules: a request is rounded up, the free block
// that starts at the traced address is taken, and what remains of it is split off or, in the large pool, stays as
// slack. Which free block the allocator chose need not be simulated: the address says it. So [Run] is one deterministic
// pass, and its counters can be held against torch's own at every checkpoint ([Result.Check]) and against the
// allocator's own list of blocks ([Result.Final]).
//
// # Recording that began late
//
// What was in use before event 1 is given back by an event or still in the allocator's own list after the last one, so
// the events undone from that list ([rewind]) give every block and segment that was there before event 1, and the
// replay begins with them. What was alive then is untraced, and counts from seq 0 on.
//
// Of a block that was made before event 1 and given back later nothing tells the size but its surroundings. It ends
// where its neighbour begins if less room lies between than the smallest free block needs, and it ends where a later
// alloc finds a free block just behind it, for free neighbours merge. Otherwise [Alloc].Open says by how much it may be
// larger than its rounded request: at most 1 MiB, what torch does not split off. Such blocks bound the peak
// ([Result].PeakHigh).
//
// Without a last list blocks whose free is seen but not their alloc are untraced, in memory that no event reserved;
// block boundaries are unknown there, and blocks get their rounded size. A free that no alloc can explain, in memory
// that was reserved while recording, is a sign of lost events. Nothing of this stops the replay: it is counted, and
// [Anomalies.Reason] says it.
//
// # Gaps
//
// Recording may stand still and go on ([Run]). One event stands for all that happened meanwhile: there the
// blocks become those of the allocator's own list of that moment ([Replay.Resume]), so that everything after it is as
// exact as before. Which block of the list is which of before is a matter of its address, size and stream; the totals
// do not depend on it.
//
// # Counters
//
// allocated falls at free_requested; active and requested fall at free_completed. They differ between the two for
// blocks that another stream still uses (record_stream). allocated is always the sum of the blocks of [Result.Allocs]
// that are live ([Alloc.LiveAt]).
package replay
