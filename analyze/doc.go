// Package analyze reduces runs: [Summarize] returns all that a report, a study or a gate needs of one run. Its
// subpackages ("rooms") answer one question each.
//
//   - identity, confidence: which run a figure belongs to, and how certain it is.
//   - memory, grouping, timeline, ladder: what held the memory at a moment, over time, and below torch's allocator.
//   - ranks: the devices of one run beside each other.
//   - hostmemory: what a run takes of the host, by phase.
//   - growth: what is held more from step to step, and when it fills the device.
//   - timing: steps, phases, modules, energy.
//   - repeats, compare, gate, explain: several runs beside each other.
//   - exhibits: what the tables and figures of a paper show, and in which order.
//   - findings, predict: advice about a run, and what a prediction says.
//
// Every function is pure: it takes the tables of runs ([schemas.Tables]) and returns a result type. The functions
// open no files and print nothing. Their units are bytes and nanoseconds. The documents also have milliseconds, as
// their keys say. The result types are the JSON documents of the command line. Their keys change only with their
// schema's version.
//
// A result that should not be taken at face value carries its reasons (Remarks). Package report puts them into
// words: the Warnings of a document, the notes under a table. The only sentences in this package are error
// messages.
package analyze
