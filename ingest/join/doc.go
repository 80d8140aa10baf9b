// Package join says, for every byte that a process had allocated at any moment, what it was for.
//
// Its inputs are what the packages beside it find in a recording of one process, a rank: the marks and tags of
// dpsight's agent, the steps and phases that package steps derives from them, and for each device the events of
// torch's allocator with the allocations that package replay finds in them. It gives each allocation its owners, one
// after another or at once, each with a category ([schemas.Categories]) and with how that is known
// ([schemas.Evidence]), and it makes the rows of allocations, owners, steps, phases, modules and module_times.
//
//	c := join.NewContext(rank)
//	results, unbound := join.Join(c, devices)
//
// The package is pure, and it uses no clock: marks and events are ordered by k, the agent's counter. The example below
// plays a training step of four blocks and prints their owners; it is the shortest way to see what the package does.
// The sections that follow are for those who change it.
//
// # Types
//
//   - [Rank] is the input: what one process recorded of itself.
//   - [Context] is what holds at each mark: step, phase, module, thread, and whether events are recorded.
//   - [Device] is the input of one device, [Result] what the join found on it.
//   - facts are what all passes look up: where marks lie among events (positions), and where each allocation was made
//     (birth).
//   - owner is one ownership of one allocation: category, evidence, name, module, and from which event until which.
//   - lists holds a list for each allocation: its tags, or its owners.
//
// # Passes
//
// Each pass is a function over what those before it found; joinDevice runs them in this order.
//
//   - locateMarks finds where each mark lies among the events. An event carries the last mark of its thread, and k
//     grows in time. So mark k lies before the first event that carries mark k or a later one.
//   - findBirths finds the phase and the module of each allocation's birth. The phase is the one that the highest mark
//     so far stands in. The module is that of the event's own mark, if that mark's phase is still the current one.
//   - findGraphs finds when autograd's graphs were made and given up.
//   - bindTags finds the allocation that each tag names; see Tags.
//   - matchBareSteps finds to each allocation of a step without tags the same one of a step with tags; see Bare steps.
//   - ownByTag gives allocations the owners that their tags prove.
//   - findWorkspaces tells workspaces of cuBLAS from tensors of their size.
//   - findPrefetched finds batches that were made in the step before the bare one that takes them.
//   - findDTypes reads from tags what the tensors in each allocation are made of.
//   - findLines finds the line of the script that asked for each allocation, and in bare steps that of its match.
//   - applyRules gives owners to the times that no tag covers; see Rules.
//   - ownLikeMatches gives allocations of bare steps the owners of their matches, and applies the rules to what is
//     left.
//   - ownByStack gives owners by the roles of stacks, where an imported snapshot has those and no marks.
//   - sortByPrecedence puts the owners of each allocation in the order in which their categories count.
//   - findHolders finds the allocations of which the agent says who keeps them, and those that C++ alone keeps.
//
// # Tags
//
// A thread that makes a mark is done with the events that carry its mark before; when a backward run ends, the
// engine's threads are done too. So a tag with k was made after the last event that some thread was done with by k,
// and before mark k's place. The last mark of the tag's own thread would not do: it may lie before the whole backward
// run. Of the allocations of its address, the one of the tagged size that touches this window is the tagged one. If
// there is none, or more than one, the tag is ambiguous; if no traced block ever had the address it is unbound. Both
// are counted.
//
// A tag comes later than the birth of what it names. From where on the category holds depends on it:
//
//   - Parameters, optimizer state and inputs are that from birth.
//   - Activations, a hook's too, are that from birth or from the step's forward pass on, whichever is later: autograd
//     holds no batch that is still on its way.
//   - Gradients and stored backprops begin at their tag. A gradient is a temporary of backward until autograd hands it
//     over, a stored backprop is a gradient on its way.
//   - What DP code makes begins at birth if the allocation was made in DP code, else at the tag.
//   - What a module has as a plain attribute between two steps, or the script as a global, in a closure or as a local
//     variable, is script, known by name unless the user says what it is. If the forward pass of a bare step made it,
//     that holds from the end of the graph on.
//
// An ownership ends where an untag says so. A model's result is outputs until the pass of the model's next call is
// over: what is left of earlier results is what the script keeps. Autograd's ownership also ends with the first
// backward run that does not keep the graph, if another owner is known to hold the allocation from there on; a script
// that keeps it by a name may keep the graph, too. Otherwise an ownership ends with the allocation, and its end counts
// as not observed. Weights that autograd saved are no activations.
//
// What autograd holds is seen only when backward begins. Where no backward followed a forward pass, as when it ran out
// of memory, an allocation that was made in it, lives on and has a hook's tag belongs to autograd too, by phase:
// otherwise hooks would be charged with all activations.
//
// # Rules
//
// For every time of an allocation's life that no tag covers, the first rule of ruleList that applies decides:
//
//   - bucketOfGradients: DDP's reducer made it and kept it: gradients.
//   - untracedBlock: it was alive before recording began, or made in a gap between two windows of recorded steps:
//     untraced.
//   - libraryWorkspace: it is workspace if it has the size of a workspace of cuBLAS or cuBLASLt, was made in forward,
//     eval or backward up to the first step, is the first such block of its thread, stream and size, and is not freed
//     before the last step's end. Elsewhere, and later, something more must tell it from a tensor: its size is none
//     that a tensor has by chance, or a survey found nobody who holds it, or it was made where the first step's was,
//     in the call of the same module, next after a block of the same size. A later one must be the only such block of
//     its thread and stream, too, and never be freed. torch 2.15 keeps no workspace: a block of that size that the
//     next event frees is one.
//   - castOfWeight: autocast kept it, and let go of it when its outermost context ended: autocast_cache.
//   - bornInDPCode: a DP hook made it for norms or per-sample gradients, or clip or accumulate did: clip_temporaries.
//   - lossTarget: it was made outside every pass, and the loss's own node in autograd's graph saved it: inputs. A
//     script may keep it by a name; a tag of the user's wins.
//   - forwardTemporary: it was made and freed inside forward, recompute or eval: forward_temporaries.
//   - keptOutput: a model gave it as a result, and it outlives the pass of the model's next call: script.
//   - activation: it was made in forward or recompute and outlives it: activations. From the backward run on that
//     gives up the graph it is script, by phase: the script holds it.
//   - bornInBackward: activation_gradients.
//   - bornInUpdate: it was made by the optimizer or for noise. It is optimizer_state if it outlives the next step too,
//     or if the first step made it and nobody frees it; else optimizer_temporaries, by phase only if it outlives the
//     update.
//   - bornInSetup: it was made in set-up and outlives its phase: inputs (setup.data), optimizer_state
//     (setup.optimizer), parameters (setup.model).
//   - bornInScript: it was made outside every pass and every call that sets something up, by the script's own code:
//     script. What steps without phases made is not known to be.
//   - anythingElse: other.
//
// A phase of the script's own counts as the phase beneath it.
//
// # Bare steps
//
// A bare step has no tags. Each of its allocations is what its match in an instrumented step is: the allocation that is
// made, and freed, at the same places of what that step does. What a tag says of the match is evidence lifetime here;
// what a rule says of it stays what it is. A bare step is, in this order,
//
//   - exactly like an instrumented one: the same events, action by action, of which at most one in twenty differs in
//     size, with the data.
//   - like one in other sizes, since its batch is another one: the same events, allocations that die where they die
//     there and were made in the same phases, and sizes that differ by few factors (the batch's, or the square of the
//     length's). At most one allocation in twenty may have a factor of its own. Which factor an allocation has does
//     not matter: a batch may be as large as a layer is wide.
//   - like parts of several. Its forward-backward pairs are held against those of another step one by one, for a
//     logical batch may have more physical ones than any other. Within a pair the shortest edit says which event is
//     which, for kernels take buffers that depend on sizes. A match must be made and freed at the same places, and its
//     size must not differ by a factor of its own. Steps that share fewer than half of the allocations are not alike
//     at all.
//
// Comparing parts has one budget of work for all steps of a device (maxWork). The steps are compared in order, so the
// steps before a bare one decide whether the budget still covers it. Past the budget, only the first two kinds of
// likeness are looked for. The budget counts comparisons and not time: the same recording gives the same matches.
//
// Sizes alone would say more, and wrong things: an activation may have the size of a batch times a parameter, as a
// per-sample gradient has. Tags of per-sample gradients alone in bare steps would leave all else unknown.
//
// The rules say less of an unmatched allocation of a bare step: what outlives backward is other, by phase, for what
// only flows through backward has ended; where per-sample gradients are computed, what ends in backward or in the
// update is known by phase only. A per-sample gradient that the next step tags is one from its birth on.
//
// A batch that was prefetched, in the step before a bare one, is known by a match too: the batch that a similar step
// prefetched for an instrumented one. If the two steps that take them do the same, what autograd held of the match it
// held of the batch.
//
// # GPU time
//
// Marks of the engine's thread say in which module's backward it is. They nest, and what runs in no module's own
// backward is charged to the enclosing one. GPU time between two stamps belongs to the module at its beginning
// ([Context.ModuleTimes]).
package join
