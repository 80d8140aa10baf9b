package schemas

// Holder is one row of holders.parquet: what keeps a block, as one search for holders found. A later row for the same
// block replaces the earlier row. An unchanged result is not written again. Parameters, buffers, gradients and
// optimizer state have no row, except the parameters of models that an exception keeps.
type Holder struct {
	RunID   string       `parquet:"run_id,dict"`    // the run's id, as in run.json
	Rank    int32        `parquet:"rank,dict"`      // the process's RANK, from 0
	Device  int32        `parquet:"device,dict"`    // torch's ordinal of the device, from 0
	AllocID int64        `parquet:"alloc_id,delta"` // the block, in allocations.parquet
	Seq     int64        `parquet:"seq,delta"`      // last event before the look
	Moment  HolderMoment `parquet:"moment,dict"`    // the kind of moment at which the look happened
	Kind    HolderKind   `parquet:"kind,dict"`      // how the block is kept
	// Path leads from a name to the block: "global kept[17]"; empty = only C++ keeps it.
	Path string `parquet:"path,dict,optional"`
	// ViewBytes is how much of the block the kept tensors show; null = all of it.
	ViewBytes int64 `parquet:"view_bytes,dict,optional"`
}

// Holders is holders.parquet. The table is absent from runs that older versions ingested and from recordings of older
// agents.
var Holders = Table[Holder]{Name: "holders", Version: 1}

// HolderMoment says at which moment of the run a search for holders took place.
type HolderMoment string

// The moments.
const (
	HeldAtStep   HolderMoment = "step"   // the end of an instrumented step
	HeldAtOOM    HolderMoment = "oom"    // a request failed
	HeldAtExit   HolderMoment = "exit"   // the interpreter ends
	HeldAtSurvey HolderMoment = "survey" // between two lines of the script
)

// HolderKind says what kind of reference keeps a block.
type HolderKind string

// The kinds.
const (
	HeldByPython    HolderKind = "python"    // a path of references leads to a tensor in the block
	HeldByGraph     HolderKind = "graph"     // a path leads to a tensor whose graph has saved it
	HeldByException HolderKind = "exception" // a path goes through the frames of a caught exception
	HeldByCycle     HolderKind = "cycle"     // only objects that refer to each other keep the block
	HeldByCpp       HolderKind = "native"    // no Python object keeps the block: only C++ does
)
