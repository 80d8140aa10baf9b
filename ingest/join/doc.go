// Package join says what every byte that a process had allocated was for, at any moment.
//
// The inputs of package join come from the packages beside it and describe a recording of one process, a rank. The
// inputs are the marks and tags of dpsight's agent, the steps and phases that package steps derives from them, and for
// each device the events of torch's allocator with the allocations that package replay finds in them. The package gives
// each allocation its owners. An allocation may have several owners, one after another or at once. Each owner has a
// category ([schemas.Categories]) and its evidence ([schemas.Evidence]). The package also makes the rows of
// allocations, owners, steps, phases, modules and module_times.
//
//	c := join.NewContext(rank)
//	results, unbound := join.Join(c, devices)
//
// Package join is pure and uses no clock: marks and events are ordered by k, the agent's counter. The example below
// plays a training step of four blocks and prints their owners. The example is the shortest way to see what the package
// does. The sections that follow are for those who change the package.
//
// # Types
//
//   - [Rank] is the input: what one process recorded of itself.
//   - [Context] is the state at each mark: step, phase, module, thread, and whether events are recorded.
//   - [Device] is the input of one device, [Result] what the join found on it.
//   - facts are what all passes look up: where marks lie among events (positions), and where each allocation was made
//     (birth).
//   - owner is one ownership of one allocation: category, evidence, name, module, and its first and last event.
//   - lists holds a list for each allocation: its tags, or its owners.
//
// # Passes
//
// Each pass is a function that uses the results of the passes before it. joinDevice runs them in this order.
//
//   - locateMarks finds where each mark lies among the events. An event carries the last mark of its thread, and k
//     grows in time. So mark k lies before the first event that carries mark k or a later one.
//   - findBirths finds the phase and the module of each allocation's birth. The phase comes from the highest mark so
//     far. The module comes from the event's own mark, if that mark's phase is still the current one.
//   - findGraphs finds when autograd's graphs were made and given up.
//   - bindTags finds the allocation that each tag names; see Tags.
//   - matchBareSteps matches each allocation of a step without tags with the same one of a step with tags; see Bare
//     steps.
//   - ownByTag gives allocations the owners that their tags prove.
//   - findWorkspaces tells workspaces of cuBLAS from tensors of their size.
//   - findPrefetched finds batches that were made one step early, for a bare step.
//   - findDTypes reads from tags the data types of the tensors in each allocation.
//   - findLines finds the line of the script that asked for each allocation. In bare steps it takes the line of the
//     match.
//   - applyRules gives owners to the times that no tag covers; see Rules.
//   - ownLikeMatches gives allocations of bare steps the owners of their matches, and applies the rules to the rest.
//   - ownByStack gives owners by the roles of stacks. ownByStack serves imported snapshots, which have stacks and no
//     marks.
//   - sortByPrecedence puts the owners of each allocation in the order in which their categories count.
//   - findHolders finds the allocations whose keepers the agent names, and those that only C++ keeps.
//
// # Tags
//
// When a thread makes a mark, the events that carry its previous mark are over. When a backward run ends, so are the
// events of the engine's threads. So a tag of mark k was made after the last event that some thread had finished by k,
// and before the place of mark k. The last mark of the tag's own thread is no sufficient bound: it may lie before the
// whole backward run. The tagged allocation is the one at the tag's address, of the tag's size, whose life touches this
// window. If no such allocation exists, or more than one, the tag is ambiguous. If no traced block ever had the
// address, the tag is unbound. Ambiguous and unbound tags are counted.
//
// A tag comes later than the birth of the allocation that it names. The category decides from when on the ownership
// holds:
//
//   - Parameters, optimizer state and inputs: from birth.
//   - Activations, including those that a hook holds: from birth or from the step's forward pass on, whichever is
//     later. Autograd does not hold a batch before the forward pass.
//   - Gradients and stored backprops: from their tag on. A gradient is a temporary of backward until autograd hands it
//     over, and a stored backprop is such a gradient before it is stored.
//   - Tensors of DP code: from birth if the allocation was made in DP code, else from the tag on.
//   - Plain attributes of a module between two steps, and the script's globals, closures and local variables: their
//     blocks are script, by name, unless the user says what they are. If the forward pass of a bare step made them,
//     this holds from the end of the graph on.
//
// An ownership ends where an untag says so. A model's result is outputs until the pass of the model's next call is
// over. Earlier results that still live are what the script keeps. Autograd's ownership also ends with the first
// backward run that does not keep the graph, if another owner is known to hold the allocation from there on. Without
// another owner, autograd's ownership goes on: a script that keeps the tensor by a name may also keep the graph.
// Otherwise an ownership ends with the allocation, and its end counts as not observed. Weights that autograd saved are
// not activations.
//
// What autograd holds is seen only when backward begins. If no backward followed a forward pass, as after an
// out-of-memory error, autograd is an owner by phase of every allocation that the pass made, that lives on and that
// has a hook's tag. Otherwise hooks would be charged with all activations.
//
// # Rules
//
// For every time of an allocation's life that no tag covers, the first rule of ruleList that applies decides:
//
//   - bucketOfGradients: DDP's reducer made the block and kept it: gradients.
//   - untracedBlock: the block was alive before recording began, or was made in a gap between two windows of recorded
//     steps: untraced.
//   - libraryWorkspace: a block is workspace under four conditions. The block has the size of a workspace of cuBLAS or
//     cuBLASLt. The block was made in forward, eval or backward up to the first step. The block is the first such one
//     of its thread, stream and size. The block is not freed before the last step's end. Elsewhere, and later, one more
//     sign must tell the block from a tensor. No tensor has the block's size by chance, or a survey found no holder. Or
//     the call of the same module made the block in the same place as the first step's workspace, next after a block of
//     the same size. A later one must also be the only such block of its thread and stream, and never be freed. torch
//     2.15 keeps no workspaces: there a block of that size is one if the next event frees it.
//   - castOfWeight: autocast kept the block, and let go of it when autocast's outermost context ended: autocast_cache.
//   - bornInDPCode: a DP hook made the block for norms or per-sample gradients, or clip or accumulate did:
//     clip_temporaries.
//   - lossTarget: the block was made outside every pass, and the loss's own node in autograd's graph saved it: inputs.
//     A script may keep a loss's target by a name. A tag of the user's wins.
//   - forwardTemporary: the block was made and freed inside forward, recompute or eval: forward_temporaries.
//   - keptOutput: a model returned the block as a result, and the block outlives the pass of the model's next call:
//     script.
//   - activation: the block was made in forward or recompute and outlives it: activations. From the backward run on
//     that gives up the graph, the block is script, by phase: the script holds it.
//   - bornInBackward: activation_gradients.
//   - bornInUpdate: the block was made by the optimizer or for noise. The block is optimizer_state if it outlives the
//     next step too, or if the first step made it and nobody frees it. Otherwise the block is optimizer_temporaries, by
//     phase only if it outlives the update.
//   - bornInSetup: the block was made in set-up and outlives its phase: inputs (setup.data), optimizer_state
//     (setup.optimizer), parameters (setup.model).
//   - bornInScript: the script's own code made the block, outside every pass and every set-up call: script. The rule
//     does not apply in steps without phases, where a birth outside every pass cannot be recognised.
//   - anythingElse: other.
//
// A phase that the script names counts as the phase around it.
//
// # Bare steps
//
// A bare step has no tags. Each of its allocations takes its category from its match in an instrumented step: the
// allocation that is made and freed at the same places of the same work. Evidence by tag becomes evidence by
// lifetime here. A rule's evidence stays as it is. A bare step is matched in one of three ways, tried in this
// order:
//
//   - Exactly like an instrumented step: the events are the same, action by action. At most one event in twenty differs
//     in size, because the data differ.
//   - Like one in other sizes, because its batch is another: the events are the same, and allocations were made in the
//     same phases and die at the same places. Sizes differ by few factors (the batch's, or the square of the length's).
//     At most one allocation in twenty may have a factor of its own. Which of the factors an allocation has does not
//     matter: a batch may be as large as a layer is wide.
//   - Like parts of several. A bare step's forward-backward pairs are compared with those of another step one by one,
//     since a logical batch may have more physical ones than any other. Within a pair the shortest edit matches the
//     events, since kernels take buffers that depend on sizes. A match must be made and freed at the same places, and
//     its size must not differ by a factor of its own. Steps that share fewer than half of the allocations do not match
//     at all.
//
// Comparing parts has one budget of work for all steps of a device (maxWork). The steps are compared in order, so
// the steps before a bare one decide whether the budget still covers it. Past the budget, only the first two ways
// are tried. The budget counts comparisons and not time: the same recording gives the same matches.
//
// Matching by size alone would find more, but would be wrong: an activation may have the size of a batch times a
// parameter, as a per-sample gradient has. Tagging only per-sample gradients in bare steps would leave all else
// unknown.
//
// The rules say less about an unmatched allocation of a bare step. An unmatched allocation that outlives backward is
// other, by phase, since what only flows through backward has ended by then. Where per-sample gradients are computed,
// an unmatched allocation that ends in backward or in the update is known by phase only. A block that the next step
// tags as a per-sample gradient is one from its birth on.
//
// A batch that was prefetched for a bare step is matched too: with the batch that a similar step prefetched for an
// instrumented one. If the two consuming steps do the same, autograd held the same parts of both batches.
//
// # GPU time
//
// Marks of the engine's thread say which module's backward runs. The modules' backward runs nest, and time outside
// every module's own backward is charged to the enclosing one. GPU time between two stamps belongs to the module at its
// beginning ([Context.ModuleTimes]).
package join
