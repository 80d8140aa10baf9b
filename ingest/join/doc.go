// Package join gives every byte an owner: it joins the allocator's events, the blocks that a replay found in them, and the
// agent's marks and tags. It is pure, and it uses no clock: marks and events are ordered by k, the agent's counter.
//
// # Where a mark lies among the events
//
// Every event carries the k of the last mark of its thread. k grows in time, so mark k lies before the first event whose
// own mark is k or later, and after every event before that one. The phase of an event is the one that the highest k so
// far stands in. Its module is that of its own mark, if that mark's phase is still the current one.
//
// # Tags
//
// A thread that makes a mark is done with the events that carry its mark before; when a backward run ends, the engine's
// threads are done too. So a tag with k was made after the last event that some thread was done with by k, and before mark
// k's place. (The tag's own thread alone would not do: its last event may lie before the whole backward run.) Of the lives
// of its address, the one of the tagged size that touches this window is the tagged block. If there is none, or more than
// one, the tag is ambiguous; if no traced block ever had the address it is unbound. Both are counted. A tag says what
// the block is: parameters, optimizer state, inputs, activations are that from birth, for the tag only comes later. Two
// kinds begin at their tag, for the block was something else before: gradients (a temporary of backward that autograd hands
// over) and stored backprops (a gradient on its way). What DP code makes begins at birth if the block was born in DP code,
// else at the tag.
//
// An ownership ends where an untag says so; autograd's also at the end of the first backward run that does not keep the
// graph, if somebody else is known to hold the block from there on. Otherwise it ends with the block, not observed.
// Weights that autograd saved are not activations.
//
// What autograd holds is seen only when backward begins. Where no backward followed a forward pass (it ran out of memory, say),
// a block that was born in it, lives on and has a hook's tag belongs to autograd too, by phase: else hooks would be charged with
// all activations.
//
// # Blocks without a tag
//
// For every moment of a block's life that no tag covers, the first rule that fits:
//
//   - untraced: it was alive before recording began.
//   - workspace: of the size of a workspace of cuBLAS or cuBLASLt, born in forward, eval or backward up to the first step, and
//     not freed before the last step's end. While no step is complete, only the first such block of each thread, stream and size.
//     Where no cuBLAS workspace stays (torch 2.15 takes one for each call): a block of that size that the next event frees.
//   - clip_temporaries: born in a DP hook's norm or per-sample-gradient computation, or in clip or accumulate.
//   - born in forward: activations if it is live when backward begins, else forward_temporaries. In recompute and eval:
//     forward_temporaries if it dies inside; what outlives recompute is activations.
//   - born in backward: activation_gradients.
//   - born in the update (optimizer, noise): optimizer_temporaries if it dies inside; optimizer_state if it outlives the next
//     step too, or was born in the first step and is never freed; else optimizer_temporaries, by phase only.
//   - born in set-up and outliving its phase: inputs (setup.data), optimizer_state (setup.optimizer), parameters (setup.model).
//   - other.
//
// A phase of the script's own counts as the phase beneath it.
//
// # Bare steps
//
// A bare step has no tags. If its events are those of an instrumented step, action by action, and at most one size in twenty
// differs (with the data), then each of its blocks is what its twin there is (evidence: lifetime). Otherwise the rules above
// are all there is.
package join
