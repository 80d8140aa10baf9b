// Package memory breaks down what one device has allocated at a moment.
//
// # How bytes are counted
//
// A live block of B bytes that was requested with R bytes gives R bytes to the first category, in the order of
// [schemas.Categories], that owns it at that moment, and B-R bytes to slack. So the categories sum to the allocator's
// own total, to the byte, at every event. A block is shared if tags prove that it has owners of several categories. So
// each category has three figures: the bytes that count under it, the bytes that it holds, and how many of the held
// bytes other categories hold too.
//
// # Which module a block belongs to
//
// A block belongs to one module at a time: the module of the owner under which it counts, or the module that the
// owner's parameter belongs to or lies nearest below, or else the module that ran when the block was allocated. All
// modules share library workspaces, see [IsSharedByModules].
//
// # Kept gradients
//
// Opacus' zero_grad keeps .grad. torch's zero_grad frees .grad unless told otherwise. [CostOfKeptGradients] replays a
// run without the gradients that nothing had written to since the last zero_grad. So methods can be compared even if
// only some loops keep .grad.
package memory
