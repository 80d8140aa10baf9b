// Package analyze reduces runs: [Summarize] returns all that a report, a study or a gate needs of one run. Package
// analyze's subpackages ("rooms") answer one question each.
//
//   - identity, confidence: which run a figure belongs to, and how certain it is.
//   - memory, grouping, timeline, ladder: what held the memory at a moment, over time, and below torch's allocator.
//   - ranks: the devices of one run beside each other.
//   - hostmemory: the host memory that a run takes, by phase.
//   - growth: memory that grows from step to step, and when it fills the device.
//   - timing: the times of steps, phases and modules, and energy.
//   - repeats, compare, gate, explain: several runs beside each other.
//   - exhibits: the data of a paper's tables and figures, in order.
//   - findings, predict: advice about a run, and what a prediction says.
//
// The functions take the tables of runs ([schemas.Tables]) and return a result type. The functions of package analyze
// open no files and print nothing. The result types' units are bytes and nanoseconds. The JSON documents also have
// milliseconds, in keys that end in _ms. The result types are the JSON documents of the command line. The result types'
// keys change only with their schema's version.
//
// A result that should not be taken at face value carries its reasons (Remarks). Package report puts them into
// words: the Warnings of a document, the notes under a table. The only sentences in this package are error
// messages.
package analyze
