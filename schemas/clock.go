package schemas

// EventClock says when one device's allocator events happened. It is two columns of [Events], for who joins events with
// what was read by time.
type EventClock struct {
	Rank, Device int32 // the process's RANK, from 0
	// TimeNS[i] is the time of the event with seq i+1: Unix time of the host, which torch makes of the CPU's counter at
	// each drain, to the microsecond. Neighbours may be equal, and over a drain some microseconds out of order.
	TimeNS []int64 // ns
}
