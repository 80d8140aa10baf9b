package schemas

// An Action is what the allocator did. Stored as a small integer: strings cost half the write speed of the largest
// table.
type Action uint8

// The allocator's actions, in torch's own words.
const (
	ActionUnknown       Action = 0
	ActionAlloc         Action = 1
	ActionFreeRequested Action = 2 // the program gave the block back; allocated falls here
	ActionFreeCompleted Action = 3 // the block can be used again; active and requested fall here
	ActionSegmentAlloc  Action = 4
	ActionSegmentFree   Action = 5
	ActionSegmentMap    Action = 6 // expandable segments
	ActionSegmentUnmap  Action = 7
	ActionSnapshot      Action = 8
	ActionOOM           Action = 9
	ActionUserDefined   Action = 10
	ActionAnnotate      Action = 11
	// ActionGap is dpsight's own: nothing was recorded between the event before it and the one after. Its size is by
	// how much reserved grew or shrank meanwhile; what was allocated jumps to the allocator's own list of blocks.
	ActionGap Action = 12
)

var actionNames = [...]string{"unknown", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
	"segment_map", "segment_unmap", "snapshot", "oom", "user_defined", "annotate", "gap"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return actionNames[0]
}

// ParseAction is the inverse of [Action.String]; words that this package does not know give [ActionUnknown].
// torch's older "free" is a completed free.
func ParseAction(s string) Action {
	for i, n := range actionNames[:ActionGap] { // torch has no gaps
		if n == s {
			return Action(i)
		}
	}
	if s == "free" {
		return ActionFreeCompleted
	}
	return ActionUnknown
}

// EventColumns holds one device's allocator events in order, a column a field; row i is the event with seq i+1.
// All columns have the same length. Columns, not rows: replay and join touch millions of events, two columns at a time.
type EventColumns struct {
	Action []Action
	Addr   []uint64 // for an oom event: bytes free on the device
	Size   []int64  // alloc and free_*: requested bytes; segment_*: real bytes; gap: change of reserved
	Stream []uint64 // CUDA stream handle; 0 = the default stream
	TimeNS []int64  // the allocator's clock, truncated to a microsecond
	Mark   []uint32 // k of the last mark of the event's thread; 0 = none
	Stack  []uint32 // id in the stacks table; 0 = none
	Pool   []uint64 // private pool id; 0 = the default pool or unknown
	Line   []uint32 // number of the line that the event's thread was on, or made its node; empty = none has any
}

// Len is the number of events.
func (e *EventColumns) Len() int { return len(e.Action) }

// Append adds one event.
func (e *EventColumns) Append(a Action, addr uint64, size int64, stream uint64, timeNS int64, mark, stack uint32,
	pool uint64) {
	e.Action = append(e.Action, a)
	e.Addr = append(e.Addr, addr)
	e.Size = append(e.Size, size)
	e.Stream = append(e.Stream, stream)
	e.TimeNS = append(e.TimeNS, timeNS)
	e.Mark = append(e.Mark, mark)
	e.Stack = append(e.Stack, stack)
	e.Pool = append(e.Pool, pool)
	if len(e.Line) > 0 {
		e.Line = append(e.Line, 0)
	}
}

// SetLine sets the line of event i.
func (e *EventColumns) SetLine(i int, line uint32) {
	if line == 0 && len(e.Line) == 0 {
		return
	}
	if len(e.Line) < e.Len() {
		e.Line = append(make([]uint32, 0, cap(e.Action)), e.Line...)[:e.Len()]
	}
	e.Line[i] = line
}

// LineOf is the line of event i, 0 = none.
func (e *EventColumns) LineOf(i int) uint32 {
	if i < len(e.Line) {
		return e.Line[i]
	}
	return 0
}

// AppendAll adds all events of o.
func (e *EventColumns) AppendAll(o *EventColumns) {
	e.Action = append(e.Action, o.Action...)
	e.Addr = append(e.Addr, o.Addr...)
	e.Size = append(e.Size, o.Size...)
	e.Stream = append(e.Stream, o.Stream...)
	e.TimeNS = append(e.TimeNS, o.TimeNS...)
	e.Mark = append(e.Mark, o.Mark...)
	e.Stack = append(e.Stack, o.Stack...)
	e.Pool = append(e.Pool, o.Pool...)
	if n := e.Len(); len(e.Line) > 0 || len(o.Line) > 0 {
		for len(e.Line) < n-len(o.Line) {
			e.Line = append(e.Line, 0)
		}
		e.Line = append(e.Line, o.Line...)
		for len(e.Line) < n {
			e.Line = append(e.Line, 0)
		}
	}
}

// Event is one row of events.parquet: one raw event of the caching allocator.
type Event struct {
	RunID  string `parquet:"run_id,dict"`
	Rank   int32  `parquet:"rank,dict"`              // the process's RANK, from 0
	Device int32  `parquet:"device,dict"`            // torch's ordinal, from 0
	Seq    int64  `parquet:"seq,delta"`              // from 1
	Action int32  `parquet:"action,dict"`            // an [Action]
	Addr   uint64 `parquet:"address"`                // device address; bytes free for an oom
	Size   int64  `parquet:"size_bytes,dict"`        // see [EventColumns.Size]
	Stream uint64 `parquet:"stream,dict"`            // CUDA stream handle; 0 = the default stream
	TimeNS int64  `parquet:"time_ns,delta"`          // the allocator's clock
	Mark   int64  `parquet:"mark,delta,optional"`    // k of the last mark in the event's thread
	Stack  int64  `parquet:"stack_id,dict,optional"` // in stacks.parquet; null = none was recorded
	Pool   uint64 `parquet:"pool_id,dict,optional"`  // private pool; null = the default one, or unknown
}

// Events is events.parquet.
var Events = Table[Event]{Name: "events", Version: 1}
