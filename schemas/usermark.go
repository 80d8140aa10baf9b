package schemas

// UserMark is a mark that the script set with dpsight.mark. It is no table: readers derive it from marks and events.
type UserMark struct {
	Rank, Device int32 // the process's RANK, from 0
	Seq          int64 // of the last event before it, 0 = none
	Label        string
}
