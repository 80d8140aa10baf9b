package schemas

// UserMark is a mark that the script set with dpsight.mark. UserMark is no table: readers derive user marks from
// marks and events.
type UserMark struct {
	Rank, Device int32 // the process's RANK, and torch's ordinal of the device, from 0
	Seq          int64 // number of the last event before the mark; 0 = none
	Label        string
}
