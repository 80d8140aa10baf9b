package schemas

// Mark is one row of marks.parquet: one event of the agent. The tags of a mark are separate rows with the same k, of
// kind "tag" or "untag". A tag's category says what the agent saw in the tensor (a spool.TagKind). The tag's category
// is not yet a [Category].
type Mark struct {
	RunID    string `parquet:"run_id,dict"`              // the run's id, as in run.json
	Rank     int32  `parquet:"rank,dict"`                // the process's RANK, from 0
	K        int64  `parquet:"k,delta"`                  // number of the mark, from 1
	Thread   int32  `parquet:"thread,dict"`              // number that the agent gave the thread; 0 = the first thread
	TimeNS   int64  `parquet:"time_ns,delta"`            // ns, Unix time
	Kind     string `parquet:"kind,dict"`                // name of a spool.Kind; tag or untag
	Flags    int32  `parquet:"flags,dict"`               // bits that depend on the kind: see spool.Mark
	Address  uint64 `parquet:"address,optional"`         // for tags: base address of the storage
	Bytes    int64  `parquet:"bytes,optional"`           // for tags: bytes of the storage
	Category string `parquet:"category,dict,optional"`   // for tags: what the agent saw in the tensor
	Label    string `parquet:"label,delta,optional"`     // name of a phase, mark, tag or optimizer
	Module   int64  `parquet:"module_id,delta,optional"` // in modules.parquet, from 1; null = none
	A        uint64 `parquet:"a,dict,optional"`          // the mark's own operands: see spool.Kind
	B        uint64 `parquet:"b,optional"`               // the mark's own operand
}

// Marks is marks.parquet.
var Marks = Table[Mark]{Name: "marks", Version: 1}

// GradientWrite says when a gradient was complete in its block: the hook on its parameter ran just after event Seq.
// GradientWrite is no table: readers derive gradient writes from marks and events.
type GradientWrite struct {
	Rank, Device int32  // the process's RANK, and torch's ordinal of the device, from 0
	Seq          int64  // number of the event, from 1
	Address      uint64 // base address of the block
}
