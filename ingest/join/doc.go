// Package join gives every byte an owner: it joins the allocator's events, the blocks that a replay found in them, and
// the agent's marks and tags. It is pure, and it uses no clock: marks and events are ordered by k, the agent's counter.
//
// # Where a mark lies among the events
//
// Every event carries the k of the last mark of its thread. k grows in time, so mark k lies before the first event
// whose own mark is k or later, and after every event before that one. The phase of an event is the one that the
// highest k so far stands in. Its module is that of its own mark, if that mark's phase is still the current one.
//
// # Tags
//
// A thread that makes a mark is done with the events that carry its mark before; when a backward run ends, the engine's
// threads are done too. So a tag with k was made after the last event that some thread was done with by k, and before
// mark k's place. (The tag's own thread alone would not do: its last event may lie before the whole backward run.) Of
// the lives of its address, the one of the tagged size that touches this window is the tagged block. If there is none,
// or more than one, the tag is ambiguous; if no traced block ever had the address it is unbound. Both are counted. A
// tag says what the block is: parameters, optimizer state, inputs are that from birth, for the tag only comes later.
// Activations, a hook's too, are that from birth or from the step's forward pass on: autograd holds no batch that is
// still on its way. Two kinds begin at their tag, for the block was something else before: gradients (a temporary of
// backward that autograd hands over) and stored backprops (a gradient on its way). What DP code makes begins at birth
// if the block was born in DP code, else at the tag. What a module has as a plain attribute between two steps, or the
// script as a global or in a closure, is other, known by name; if a bare step's forward made it, from the end of the
// graph on.
//
// An ownership ends where an untag says so; autograd's also at the end of the first backward run that does not keep the
// graph, if somebody else is known to hold the block from there on (who keeps it by a name may keep the graph, too).
// Otherwise it ends with the block, not observed. Weights that autograd saved are not activations.
//
// What autograd holds is seen only when backward begins. Where no backward followed a forward pass (it ran out of
// memory, say), a block that was born in it, lives on and has a hook's tag belongs to autograd too, by phase: else
// hooks would be charged with all activations.
//
// # Blocks without a tag
//
// For every moment of a block's life that no tag covers, the first rule that fits:
//
//   - untraced: it was alive before recording began, or was born in a gap between two windows of recorded steps.
//
// - workspace: of the size of a workspace of cuBLAS or cuBLASLt, born in forward, eval or backward up to the first
// step, the first such block of its thread, stream and size, and not freed before the last step's end (while no step is
// complete, not freed). On a stream that comes later (a graph's capture makes one): never freed, the only such block of
// its thread and stream, and born where the
//
//	first step's was: in the call of the same module, next after a block of the same size.
//
// Where no cuBLAS workspace stays (torch 2.15 takes one for each call): a block of that size that the next event frees.
//   - gradients: DDP's reducer made it, and kept it: a bucket of gradients.
//
// - inputs: a loss's target: born outside every pass, and saved by the loss's own node in autograd's graph. No call of
// a model takes it.
//
//	  That the script keeps it by a name changes nothing; a tag of the user's does.
//	- clip_temporaries: born in a DP hook's norm or per-sample-gradient computation, or in clip or accumulate.
//
// - born in forward: activations if it is live when backward begins, else forward_temporaries. In recompute and eval:
//
// forward_temporaries if it dies inside; what outlives recompute is activations. What outlives the backward run that
// gives
//
//	  up the graph is other, by phase, from there on: the script holds it, and nobody has said for what.
//	- born in backward: activation_gradients.
//
// - born in the update (optimizer, noise): optimizer_temporaries if it dies inside; optimizer_state if it outlives the
// next
//
//	step too, or was born in the first step and is never freed; else optimizer_temporaries, by phase only.
//
// - born in set-up and outliving its phase: inputs (setup.data), optimizer_state (setup.optimizer), parameters
// (setup.model).
//   - other.
//
// A phase of the script's own counts as the phase beneath it.
//
// # Modules in backward
//
// Marks of the engine's thread say in which module's backward it is; they nest, and what runs in no module's own is
// charged to the enclosing one. GPU time between two stamps belongs to the module at its beginning
// ([Context.ModuleTimes]).
//
// # Bare steps
//
// A bare step has no tags. Each of its blocks is what its twin in an instrumented step is: the block that is made, and
// freed, at the same places of what that step does. What a tag says of the twin is evidence lifetime here, what a rule
// says of it stays what it is. A bare step is, in this order,
//
// - exactly like an instrumented one: the same events, action by action, of which at most one in twenty differs in size
// (with the data). - like one in other sizes, since its batch is another one: the same events, blocks that die where
// they die there and were born in the same phases, and sizes that differ by few factors (the batch's, or the square of
// the length's): at most one block in twenty
//
//	has a factor of its own. Which factor a block has does not matter: a batch may be as large as a layer is wide.
//
// - like parts of several. Its forward-backward pairs are held against those of another step one by one, for a logical
// batch may have more physical ones than any other; within a pair the shortest edit says which event is which, for
// kernels take buffers that depend on sizes. A twin must be born and die at the same places, and one whose size differs
// by a factor of its own is none. Steps
//
//	that share fewer than half of the blocks are not alike at all.
//
// Sizes alone (this block is batch × that parameter, so it is a per-sample gradient) would say more often something,
// and wrong things: activations have such sizes too. Tags of per-sample gradients alone in bare steps would leave all
// else unknown.
//
// Where there is no twin the rules above are all there is, and they say less: what outlives the backward of such a step
// is other, by phase, for what only flows through it has ended; where per-sample gradients are computed, what ends in
// backward or in the update is known by phase only. A per-sample gradient that the next step tags is one from its birth
// on.
//
// A batch that was made ahead, in the step before a bare one, is known by a twin too: the batch that a step like its
// own made for an instrumented one. Where the two steps that get them do the same, what autograd held of the one it
// held of the other.
package join
