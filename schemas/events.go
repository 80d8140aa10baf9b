package schemas

// An Action is the kind of an allocator event. Actions are stored as small integers, since strings would halve the
// write speed of events.parquet.
type Action uint8

// The allocator's actions, in torch's own words.
const (
	ActionUnknown       Action = 0
	ActionAlloc         Action = 1
	ActionFreeRequested Action = 2 // the program gave the block back: the allocated bytes fall here
	ActionFreeCompleted Action = 3 // the block can be used again: the active and requested bytes fall here
	ActionSegmentAlloc  Action = 4
	ActionSegmentFree   Action = 5
	ActionSegmentMap    Action = 6 // expandable segments map and unmap memory
	ActionSegmentUnmap  Action = 7
	ActionSnapshot      Action = 8
	ActionOOM           Action = 9
	ActionUserDefined   Action = 10
	ActionAnnotate      Action = 11
	// ActionGap is an action that torch does not have. ActionGap marks a gap: no events were recorded between the event
	// before it and the event after it. The size of a gap is by how much reserved changed meanwhile. After a gap, the
	// allocator's own list says which blocks are allocated.
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

// ParseAction is the inverse of [Action.String]. Unknown words give [ActionUnknown]. "free", which older versions of
// torch write, is a completed free.
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

// EventColumns holds the allocator events of one device, in order, with one column for each field. Row i is the event
// with seq i+1. All columns have the same length. An optional column may be empty, and all its values are then 0. The
// packages replay and join read millions of events, but few columns at a time, so columns are faster than rows.
type EventColumns struct {
	Action []Action
	Addr   []uint64 // for an oom event: the bytes free on the device
	Size   []int64  // bytes: of alloc and free_* requested, of segment_* real, of a gap the change of reserved
	Stream []uint64 // CUDA stream handle; 0 = the default stream; may be empty
	TimeNS []int64  // ns, by the allocator's clock, truncated to a microsecond
	Mark   []uint32 // number of the last mark of the event's thread; 0 = none
	Stack  []uint32 // id in the stacks table; 0 = none
	Pool   []uint64 // private pool id; 0 = the default pool or unknown; may be empty
	Line   []uint32 // number of the line that the event's thread was on, or that made its node; 0 = none
}

// Len returns the number of events.
func (e *EventColumns) Len() int { return len(e.Action) }

// Append adds one event.
func (e *EventColumns) Append(a Action, addr uint64, size int64, stream uint64, timeNS int64, mark, stack uint32,
	pool uint64) {
	e.Action = append(e.Action, a)
	e.Addr = append(e.Addr, addr)
	e.Size = append(e.Size, size)
	e.TimeNS = append(e.TimeNS, timeNS)
	e.Mark = append(e.Mark, mark)
	e.Stack = append(e.Stack, stack)
	set(&e.Stream, len(e.Action)-1, stream, e)
	set(&e.Pool, len(e.Action)-1, pool, e)
	set(&e.Line, len(e.Action)-1, 0, e)
}

// set sets value i of a column that may be empty.
func set[T uint32 | uint64](column *[]T, i int, v T, e *EventColumns) {
	if v == 0 && len(*column) == 0 {
		return
	}
	if len(*column) < e.Len() {
		*column = padded(*column, e)
	}
	(*column)[i] = v
}

// padded returns a column that may be empty, extended with zeros to the length and capacity of the other columns.
func padded[T any](column []T, e *EventColumns) []T {
	if cap(column) < e.Len() {
		column = append(make([]T, 0, cap(e.Action)), column...)
	}
	clear(column[len(column):e.Len()])
	return column[:e.Len()]
}

// SetStream sets the stream of event i.
func (e *EventColumns) SetStream(i int, stream uint64) { set(&e.Stream, i, stream, e) }

// SetPool sets the private pool of event i.
func (e *EventColumns) SetPool(i int, pool uint64) { set(&e.Pool, i, pool, e) }

// SetLine sets the line of event i.
func (e *EventColumns) SetLine(i int, line uint32) { set(&e.Line, i, line, e) }

// StreamOf returns the stream of event i.
func (e *EventColumns) StreamOf(i int) uint64 { return valueOf(e.Stream, i) }

// PoolOf returns the private pool of event i.
func (e *EventColumns) PoolOf(i int) uint64 { return valueOf(e.Pool, i) }

// LineOf returns the line of event i; 0 = none.
func (e *EventColumns) LineOf(i int) uint32 { return valueOf(e.Line, i) }

func valueOf[T uint32 | uint64](column []T, i int) T {
	if i < len(column) {
		return column[i]
	}
	return 0
}

// Part returns the events with indexes from from up to, but not including, to. The part shares memory with e, but
// appending to the part does not change e.
func (e *EventColumns) Part(from, to int) EventColumns {
	return EventColumns{Action: part(e.Action, from, to), Addr: part(e.Addr, from, to), Size: part(e.Size, from, to),
		Stream: part(e.Stream, from, to), TimeNS: part(e.TimeNS, from, to), Mark: part(e.Mark, from, to),
		Stack: part(e.Stack, from, to), Pool: part(e.Pool, from, to), Line: part(e.Line, from, to)}
}

func part[T any](column []T, from, to int) []T {
	if len(column) == 0 {
		return nil
	}
	return column[from:to:to]
}

// AppendAll adds all events of o.
func (e *EventColumns) AppendAll(o *EventColumns) {
	n := e.Len()
	e.Action = append(e.Action, o.Action...)
	e.Addr = append(e.Addr, o.Addr...)
	e.Size = append(e.Size, o.Size...)
	e.TimeNS = append(e.TimeNS, o.TimeNS...)
	e.Mark = append(e.Mark, o.Mark...)
	e.Stack = append(e.Stack, o.Stack...)
	appendAll(&e.Stream, o.Stream, n, e)
	appendAll(&e.Pool, o.Pool, n, e)
	appendAll(&e.Line, o.Line, n, e)
}

// appendAll appends the values of a column that may be empty. n is the number of events before the new ones.
func appendAll[T any](column *[]T, more []T, n int, e *EventColumns) {
	if len(*column) > 0 || len(more) > 0 {
		*column = padded(*column, e)
		copy((*column)[n:], more)
	}
}

// Event is one row of events.parquet: one raw event of the caching allocator.
type Event struct {
	RunID  string `parquet:"run_id,dict"`            // the run's id, as in run.json
	Rank   int32  `parquet:"rank,dict"`              // the process's RANK, from 0
	Device int32  `parquet:"device,dict"`            // torch's ordinal of the device, from 0
	Seq    int64  `parquet:"seq,delta"`              // number of the event, from 1
	Action int32  `parquet:"action,dict"`            // an [Action]
	Addr   uint64 `parquet:"address"`                // device address; for an oom event the bytes free on the device
	Size   int64  `parquet:"size_bytes,dict"`        // see [EventColumns.Size]
	Stream uint64 `parquet:"stream,dict"`            // CUDA stream handle; 0 = the default stream
	TimeNS int64  `parquet:"time_ns,delta"`          // ns, by the allocator's clock
	Mark   int64  `parquet:"mark,delta,optional"`    // number of the last mark in the event's thread
	Stack  int64  `parquet:"stack_id,dict,optional"` // stack in stacks.parquet; null = none was recorded
	Pool   uint64 `parquet:"pool_id,dict,optional"`  // private pool; null = the default one, or unknown
}

// Events is events.parquet.
var Events = Table[Event]{Name: "events", Version: 1}
