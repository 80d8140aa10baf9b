// Package analyze reduces runs: [Summarize] gives all that a report, a study or a gate needs of one run. It stands in
// the middle of the rooms below it, which answer one question each.
//
//   - identity, confidence: which run a figure is of, and how sure it is.
//   - memory, grouping, timeline, ladder: what held the memory at a moment, over time, and below torch's allocator.
//   - ranks: the devices of one run beside each other.
//   - hostmemory: what a run takes of the host, by phase.
//   - growth: what is held more from step to step, and when it fills the device.
//   - timing: steps, phases, modules, energy.
//   - repeats, compare, gate, explain: several runs beside each other.
//   - exhibits: what the tables and figures of a paper show of them, and in which order.
//   - findings, predict: what is worth saying of a run, and what a prediction says.
//
// Every function is pure: the tables of a run in ([schemas.Tables]), a result type out. No files, no printing, no units
// but bytes and nanoseconds (and milliseconds in the documents, whose keys say so). The result types are the JSON
// documents of the command line; their keys change only with their schema's version.
//
// A result that should not be taken at face value carries its reasons (Remarks). Report puts them into words: the
// Warnings of a document, the notes under a table. No room makes sentences but those of errors.
package analyze
