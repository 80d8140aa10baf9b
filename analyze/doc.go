// Package analyze turns the tables of runs into answers: what held the memory at a moment, what a phase costs, how much
// more one run needs than another.
//
// Every function is pure: tables in ([Input]), a result type out. No files, no printing, no units but bytes and
// nanoseconds (and milliseconds in the documents, whose keys say so). The result types are the JSON documents of the
// command line; their keys change only with their schema's version.
//
// # How bytes are counted
//
// A live block of B bytes that was requested with R bytes gives R bytes to the first category, in the order of
// [schemas.Categories], that owns it at that moment, and B-R bytes to slack. So the categories sum to the allocator's
// own total, to the byte, at every event. A block that tags prove to have owners of several categories is shared:
// beside the bytes that a category is counted with stand the bytes that it holds, and how many of those others hold
// too.
//
// # Whose bytes are
//
// A block belongs to one module at a time: that of the owner that it is counted under, or the one that the owner's
// parameter is of or lies nearest below, or else the one that ran when the block was allocated. [BreakdownBy] says of
// how many bytes each is so, and of how many there is no module: libraries' workspaces all modules share, see
// [SharedByModules]. Phase, step and stack are those of the block's birth; the op is the one that keeps an activation
// for backward, as autograd names it, and other categories have none.
//
// # Repeats
//
// Runs of one experiment on one kind of machine are a [Cell]: the breakdown is that of the run with the median peak,
// times are medians of the runs' medians, and the interval around them is one of order statistics, with the confidence
// that so few values can give. In a [Study] each cell is compared with the baseline of its own parameters.
//
// # Kept gradients
//
// Opacus' zero_grad keeps .grad, torch's frees it. [KeptGradients] replays a run without the gradients that nothing had
// written to since zero_grad, so that methods can be compared whatever their loops do.
//
// # Warnings
//
// A result that should not be taken at face value carries its reasons (Warnings), which end as footnotes.
package analyze
