// Package join finds, for each byte that a process had allocated, which category and owner it had at each moment.
//
// The inputs of package join describe a recording of one process, a rank. The inputs of package join are the marks and
// tags of dpsight's agent, the steps and phases that package steps derives from them, and for each device the events of
// torch's allocator with the allocations that package replay finds in them. Package join finds the owners of each
// allocation. An allocation may have several owners, one after another or at the same time. Each owner has a category
// ([schemas.Categories]) and its evidence ([schemas.Evidence]). The package also makes the rows of allocations, owners,
// steps, phases, modules and module_times.
//
//	c := join.NewContext(rank)
//	results, unbound := join.Join(c, devices)
//
// Package join reads no files and uses no clock: marks and events are ordered by k, the agent's counter. The example of
// this package simulates a training step of four blocks and prints their owners; it is a good first look at the
// package. The following sections are for people who change the package.
//
// # Types
//
//   - [Rank] is the input: what one process recorded of itself.
//   - [Context] is the state at each mark: step, phase, module, thread, and whether events are recorded.
//   - [Device] is the input of one device, [Result] what the join found on it.
//   - facts is the data that all passes look up: where marks lie among events (positions), and where each allocation
//     was made (birth).
//   - owner is one owner of one allocation: category, evidence, name, module, and its first and last event.
//   - lists holds a list for each allocation: its tags, or its owners.
//
// # Passes
//
// Each pass is a function that uses the results of the passes before it. joinDevice runs them in this order.
//
//   - locateMarks finds where each mark lies among the events. An event carries the last mark of its thread, and k
//     grows in time. So mark k lies before the first event that carries mark k or a later one.
//   - findBirths finds the phase and the module in which each allocation was made. The phase comes from the highest
//     mark so far. The module comes from the mark that the event carries, if that mark's phase is still the current
//     one.
//   - findGraphs finds when autograd's graphs were made and freed.
//   - bindTags finds the allocation that each tag names; see Tags.
//   - matchBareSteps matches each allocation of a step without tags with the corresponding allocation of a step with
//     tags; see Bare steps.
//   - ownByTag gives allocations the owners that their tags prove.
//   - findWorkspaces distinguishes workspaces of cuBLAS from tensors of the same size.
//   - findPrefetched finds batches that were made in one step for the next step, if that is a bare step.
//   - findDTypes reads from tags the data types of the tensors in each allocation.
//   - findLines finds the line of the script that requested each allocation. In bare steps it takes the line of the
//     match.
//   - applyRules finds owners for the parts of an allocation's life that no tag covers; see Rules.
//   - ownLikeMatches gives allocations of bare steps the owners of their matches, and applies the rules to the
//     remaining allocations.
//   - ownByStack gives owners by the roles of stacks. ownByStack serves imported snapshots, which have stacks and no
//     marks.
//   - sortByPrecedence puts the owners of each allocation in the order in which their categories count.
//   - findHolders finds the allocations whose holders the agent names, and the allocations that only C++ keeps.
//
// # Tags
//
// When a thread makes a mark, all events that carry the thread's previous mark lie before it. When a backward run ends,
// all events of the engine's threads lie before that end. So a tag of mark k was made after the last event that is
// known to lie before k, and before the place of mark k. The last mark of the tag's own thread is no sufficient bound,
// since it may lie before the whole backward run. The tagged allocation has the tag's address and size, and is live
// somewhere between these two bounds. If no allocation or more than one fits, the tag is ambiguous. If no traced block
// had the address, the tag is unbound. The report counts ambiguous and unbound tags.
//
// A tag comes later than the birth of the allocation that it names. The category decides from which moment on the owner
// holds the allocation:
//
//   - Parameters, optimizer state and inputs: from birth.
//   - Activations, including those that a hook holds: from birth or from the step's forward pass on, whichever is
//     later. Autograd does not hold a batch before the forward pass.
//   - Gradients and stored backprops: from their tag on. A gradient is a temporary of backward until autograd hands it
//     over, and a stored backprop is a gradient of an activation before it is stored.
//   - Tensors of DP code: from birth if the allocation was made in DP code, else from the tag on.
//   - Plain attributes of a module between two steps, and the script's globals, closures and local variables: their
//     blocks count as script, under their name, unless a tag of the user gives another category. If the forward pass of
//     a bare step made the blocks, they count as script from the end of the graph on.
//
// An untag ends an owner's hold. A model's result counts as outputs until the pass of the model's next call ends.
// Earlier results that are still live count as script. Autograd's hold also ends with the first backward run that does
// not keep the graph, if another owner is known to hold the allocation from there on. Without another owner, autograd's
// hold continues, since a script that keeps the tensor by a name may also keep the graph. Any other owner holds an
// allocation until it is freed, and the end counts as not observed. Weights that autograd saved do not count as
// activations.
//
// The agent sees only at the beginning of backward what autograd holds. If no backward followed a forward pass, as
// after an out-of-memory error, autograd is an owner, by phase, of the allocations that the pass made, that outlive it
// and that have a hook's tag. Otherwise hooks would be charged with all activations.
//
// # Rules
//
// For each part of an allocation's life that no tag covers, the first rule of ruleList that applies decides:
//
//   - bucketOfGradients: DDP's reducer made the block and kept it: gradients.
//   - untracedBlock: the block was alive before recording began, or was made in a gap between two windows of recorded
//     steps: untraced.
//   - libraryWorkspace: a block is workspace under four conditions. The block has the size of a workspace of cuBLAS or
//     cuBLASLt. The block was made in forward, eval or backward up to the first step. The block is the first one of its
//     thread, stream and size. The block is not freed before the last step's end. A block made elsewhere or later needs
//     one more sign that it is no tensor. The first sign is that no tensor has its size by chance. The second sign is
//     that a survey found no holder. The third sign is that a call of the same module made it in the same place as the
//     first step's workspace, next after a block of the same size. A later block must also be the only block of that
//     size of its thread and stream, and must not be freed. torch 2.15 keeps no workspaces: there a block of that size
//     is a workspace if the next event frees it.
//   - castOfWeight: autocast kept the block, and released it when autocast's outermost context ended: autocast_cache.
//   - bornInDPCode: a DP hook made the block for norms or per-sample gradients, or phase clip or accumulate did:
//     clip_temporaries.
//   - lossTarget: the block was made outside all passes, and the loss's node in autograd's graph saved it: inputs. The
//     block is inputs even if the script keeps it by a name. A tag of the user takes precedence.
//   - forwardTemporary: the block was made and freed inside forward, recompute or eval: forward_temporaries.
//   - keptOutput: a model returned the block as a result, and the block outlives the pass of the model's next call:
//     script.
//   - activation: the block was made in forward or recompute and outlives that phase: activations. After the backward
//     run that frees the graph, the block counts as script, by phase, since the script must hold it.
//   - bornInBackward: the block was made in backward: activation_gradients.
//   - bornInUpdate: the block was made by the optimizer or for noise. The block is optimizer_state if it outlives the
//     next step too, or if the first step made it and it is not freed. Otherwise the block is optimizer_temporaries; if
//     it outlives the update, the evidence is only the phase.
//   - bornInSetup: the block was made in set-up and outlives its phase. The category of a block made in set-up is
//     inputs if the phase is setup.data, optimizer_state if it is setup.optimizer, and parameters if it is setup.model.
//   - bornInScript: the script's own code made the block, outside all passes and set-up calls: script. The rule does
//     not apply in steps without phases, since these do not show that a block was made outside all passes.
//   - anythingElse: no other rule applies: other.
//
// For the rules, a phase that the script names counts as the phase around it.
//
// # Bare steps
//
// A bare step has no tags. An allocation of a bare step takes its category from its match in an instrumented step: the
// allocation that is made and freed at the same places of the same work. The match's evidence by tag becomes evidence
// by lifetime. A rule's evidence stays as it is. A bare step is matched in one of three ways, tried in this order:
//
//   - Exactly like an instrumented step: the events are the same, action by action. At most one event in twenty differs
//     in size, because the data differ.
//   - Like an instrumented step in other sizes, because the batch differs: the events are the same, and allocations are
//     made in the same phases and freed at the same places. Sizes differ by few factors (the batch's, or the square of
//     the length's). At most one allocation in twenty may have a factor that no other allocation has. Which of the
//     factors an allocation has does not matter, since a batch may be as large as a layer is wide.
//   - Like parts of several instrumented steps. A bare step's forward-backward pairs are compared one by one with the
//     pairs of another step, since a logical batch may have more physical batches than any instrumented one. Within a
//     pair the shortest edit matches the events, since kernels take buffers that depend on sizes. A match must be made
//     and freed at the same places, and its size must not differ by a factor that no other match has. Steps that share
//     fewer than half of the allocations do not match at all.
//
// Comparing parts has one budget of work for all steps of a device (maxWork). The steps are compared in order, so
// earlier steps may use up the budget. Past the budget, only the first two ways are tried. The budget counts
// comparisons and not time, so the same recording gives the same matches.
//
// Matching by size alone would find more, but would be wrong: an activation may have the size of a batch times a
// parameter, as a per-sample gradient has. Tagging only per-sample gradients in bare steps would leave all other
// allocations unknown.
//
// The rules give weaker results for an unmatched allocation of a bare step. If it outlives backward, it is other, by
// phase, since a gradient that only flows through backward is freed by then. If per-sample gradients are computed and
// the allocation is freed in backward or in the update, it is known only by phase. A block that the next step tags as a
// per-sample gradient counts as one from its birth on.
//
// A batch that was prefetched for a bare step is matched, too: with the batch that a similar step prefetched for an
// instrumented step. If the two steps that use the batches do the same, autograd held the same parts of both batches.
//
// # GPU time
//
// Marks of the engine's thread show which module's backward is running. Calls of modules' backward are nested: time
// outside of any inner module's backward counts for the enclosing module. GPU time between two CUDA events belongs to
// the module that is running at the first one ([Context.ModuleTimes]).
package join
