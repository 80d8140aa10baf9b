package schemas

// Allocation is one row of allocations.parquet: the life of one block.
type Allocation struct {
	RunID  string `parquet:"run_id,dict"` // the run's id, as in run.json
	Rank   int32  `parquet:"rank,dict"`   // the process's RANK, from 0
	Device int32  `parquet:"device,dict"` // torch's ordinal of the device, from 0
	// number of the block, from 1, in order of AllocSeq; unique in (rank, device)
	AllocID        int64  `parquet:"alloc_id,delta"`
	Address        uint64 `parquet:"address"`              // address on the device; later blocks may have it again
	RequestedBytes int64  `parquet:"requested_bytes,dict"` // bytes that the script asked for
	// bytes of the block as the allocator counts them; >= RequestedBytes
	BlockBytes int64 `parquet:"block_bytes,dict"`
	// how many bytes larger a block from before recording began may be than BlockBytes; null = BlockBytes is exact
	OpenBytes int64  `parquet:"open_bytes,dict,optional"`
	Stream    uint64 `parquet:"stream,dict"` // CUDA stream handle; 0 = the default stream
	// private pool of the block; null = the default pool, or unknown
	Pool uint64 `parquet:"pool_id,dict,optional"`
	// event that allocated the block; 0 = before recording began. A block from a gap has the gap's own seq: the block was
	// allocated before recording went on.
	AllocSeq int64 `parquet:"alloc_seq,delta"`
	// event that requested the free; null = live at the end
	FreeRequestedSeq int64 `parquet:"free_requested_seq,delta,optional"`
	// event that completed the free; null = never completed
	FreeCompletedSeq int64 `parquet:"free_completed_seq,delta,optional"`
	AllocTimeNS      int64 `parquet:"alloc_time_ns,delta,optional"`    // ns, by the allocator's clock
	FreeTimeNS       int64 `parquet:"free_requested_time_ns,optional"` // ns, by the allocator's clock
	Step             int64 `parquet:"step,dict"`                       // -1 = before the first step
	Microbatch       int32 `parquet:"microbatch,dict"`                 // physical batch in the step, from 0
	// phase in which the block was born; empty = in a gap of the recording
	Phase  string `parquet:"phase,dict"`
	Module int64  `parquet:"module_id,delta,optional"` // module in which the block was born
	Op     string `parquet:"op,dict,optional"`         // torch operator that asked, where known
	// stack of the request, in stacks.parquet, from 1; null = none was recorded
	Stack int64 `parquet:"stack_id,dict,optional"`
	// line of the user's own code that asked for the block, or that made the autograd node that asked; a number in
	// lines.parquet, from 1; null = unknown
	Line int64 `parquet:"line_id,dict,optional"`
	// dtype of the tensors seen in the block, [MixedDTypes] if they differ; null = no tensor was seen
	DType string `parquet:"dtype,dict,optional"`
}

// Allocations is allocations.parquet. Older files of this version have one more column, category_at_peak, which readers
// ignore, since owners.parquet has the categories at the peak.
var Allocations = Table[Allocation]{Name: "allocations", Version: 2, Added: []string{"open_bytes", "line_id"}}

// MixedDTypes is the dtype of a block in which tensors of several dtypes were seen.
const MixedDTypes = "mixed"

// LiveAt reports whether the block counts as allocated just after event seq.
func (a *Allocation) LiveAt(seq int64) bool {
	return a.AllocSeq <= seq && (a.FreeRequestedSeq == 0 || a.FreeRequestedSeq > seq)
}

// Owner is one row of owners.parquet: a category's claim on one block for a part of the block's life. Several owners
// may hold a block at the same time; the block then counts under the owner whose category comes first in [Categories].
// A block has at least one owner at each moment of its life.
type Owner struct {
	RunID    string `parquet:"run_id,dict"`              // the run's id, as in run.json
	Rank     int32  `parquet:"rank,dict"`                // the process's RANK, from 0
	Device   int32  `parquet:"device,dict"`              // torch's ordinal of the device, from 0
	AllocID  int64  `parquet:"alloc_id,delta"`           // the block, in allocations.parquet
	Category string `parquet:"category,dict"`            // one of [CategoryTable]
	Name     string `parquet:"name,dict,optional"`       // name of the tensor, where the tag has one
	Module   int64  `parquet:"module_id,delta,optional"` // module in modules.parquet; null = no known module
	BeginSeq int64  `parquet:"begin_seq,delta"`          // first event after which the owner holds the block
	// first event after which the owner no longer holds the block; null = to the end of recording
	EndSeq int64 `parquet:"end_seq,delta,optional"`
	// false if EndSeq is the block's own end, and the owner may have released the block earlier
	EndObserved bool   `parquet:"end_observed"`
	Evidence    string `parquet:"evidence,dict"` // [Tagged], [Lifetime], [ByStack] or [ByPhase]
}

// Owners is owners.parquet.
var Owners = Table[Owner]{Name: "owners", Version: 1}

// HoldsAt reports whether the owner holds its block just after event seq.
func (o *Owner) HoldsAt(seq int64) bool {
	return o.BeginSeq <= seq && (o.EndSeq == 0 || o.EndSeq > seq)
}
