package schemas

// EventClock says when one device's allocator events happened. EventClock holds two columns of [Events], for code
// that joins events with samples by time.
type EventClock struct {
	Rank, Device int32 // the process's RANK, and torch's ordinal of the device, from 0
	// TimeNS[i] is the time of the event with seq i+1: Unix time of the host, which torch makes of the CPU's counter at
	// each drain, to the microsecond. Neighbouring times may be equal. The times before and after a drain may be out of
	// order by some microseconds.
	TimeNS []int64 // ns
}
