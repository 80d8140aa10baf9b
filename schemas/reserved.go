package schemas

// ReservedLevel is one row of reserved.parquet: the bytes that the allocator had reserved from one event on. A device
// has one row for the state before the first event, and one for each event that may change it ([Action.Reserves]). A
// device without such events has no row, since its reserved bytes are not known.
type ReservedLevel struct {
	RunID  string `parquet:"run_id,dict"`    // the run's id, as in run.json
	Rank   int32  `parquet:"rank,dict"`      // the process's RANK, from 0
	Device int32  `parquet:"device,dict"`    // torch's ordinal of the device, from 0
	Seq    int64  `parquet:"seq,delta"`      // number of the event; 0 = before the first
	Bytes  int64  `parquet:"reserved_bytes"` // bytes reserved just after the event
}

// Reserved is reserved.parquet.
var Reserved = Table[ReservedLevel]{Name: "reserved", Version: 1}

// Reserves reports whether an event of this action can change the reserved bytes.
func (a Action) Reserves() bool {
	switch a {
	case ActionSegmentAlloc, ActionSegmentFree, ActionSegmentMap, ActionSegmentUnmap, ActionGap:
		return true
	}
	return false
}

// DeriveReserved computes the levels of a run whose store is older than reserved.parquet, from its events and the
// verdicts on its devices. Events do not show which bytes were reserved before recording. DeriveReserved computes them
// as the replayed peak reserved minus the highest sum of the events.
func DeriveReserved(events []Event, verdicts []DeviceVerdict) []ReservedLevel {
	var out []ReservedLevel
	for i := range verdicts {
		v := &verdicts[i]
		first := len(out)
		out = append(out, ReservedLevel{Rank: v.Rank, Device: v.Device})
		var now, highest int64
		for k := range events {
			e := &events[k]
			if e.Rank != v.Rank || e.Device != v.Device || !Action(e.Action).Reserves() {
				continue
			}
			switch Action(e.Action) {
			case ActionSegmentFree, ActionSegmentUnmap:
				now -= e.Size
			default: // the size of a gap is the change
				now += e.Size
			}
			highest = max(highest, now)
			out = append(out, ReservedLevel{RunID: e.RunID, Rank: v.Rank, Device: v.Device, Seq: e.Seq, Bytes: now})
		}
		if len(out) == first+1 {
			out = out[:first]
			continue
		}
		out[first].RunID = out[first+1].RunID
		for k := range out[first:] {
			out[first+k].Bytes += v.PeakReservedBytes - highest
		}
	}
	return out
}
