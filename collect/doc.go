// Package collect runs one experiment in separate processes and records what happened into a run folder: the
// agent's journal, NVML's and the host's values over time, the output, and how the run ended.
//
// # Processes
//
//	dpsight (collector) ── supervisor ── the experiment and everything that it starts
//
// The supervisor is this same program under another name. The supervisor is the reaper of all descendants of the
// experiment, and ends all of them with the run. A process group would not include all descendants: launchers such as
// torchrun put each rank into a session of its own. The supervisor holds the read end of a pipe, and only the collector
// holds the other end. When the collector dies, even by SIGKILL, the pipe closes and the supervisor ends the
// experiment. A parent-death signal would not end all processes: grandchildren do not inherit it, and it depends on the
// thread that started the child instead of the process.
//
// Recording needs Linux, as CUDA builds of torch and the phantom GPU do. Elsewhere [Run] returns an error.
//
// # What a killed collector leaves
//
// The journal belongs to the agent and survives. Samples are flushed every few seconds as complete Parquet segments,
// which [MergeSegments] joins. The manifest is written before the experiment starts, with the status "partial".
package collect
