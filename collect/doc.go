// Package collect runs one experiment in processes of its own and records what happened into a run folder: the agent's
// journal, what NVML and the host showed meanwhile, the output, and how it ended.
//
// # Processes
//
//	dpsight (collector) ── supervisor ── the experiment and everything that it starts
//
// The supervisor is this same program started under another name. It is the reaper of all descendants of the experiment
// (launchers such as torchrun put each rank in a session of its own, so a process group does not hold them), and ends
// every one of them with the run. It holds the read end of a pipe whose other end only the collector holds: when the
// collector dies, of SIGKILL too, the pipe closes and the supervisor ends the experiment. A parent-death signal on the
// experiment was rejected as the only means: grandchildren do not inherit it, and it follows the thread, not the
// process, that started the child.
//
// Recording needs Linux, as CUDA builds of torch and the phantom GPU do; elsewhere [Run] says so.
//
// # What a killed collector leaves
//
// The journal is the agent's own and survives. Samples are flushed every few seconds as complete Parquet segments,
// which [MergeSegments] joins. The manifest is written before the experiment starts, with the status "partial".
package collect
