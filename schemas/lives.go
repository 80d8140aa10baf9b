package schemas

// Lives has the blocks of one device with their owners, in columns. Lives has only the data that sums of bytes by
// category need, and takes about a tenth of the memory of [Allocation] and [Owner]. Lives lacks the names and modules
// of owners.
type Lives struct {
	Rank, Device int32 // the process's RANK and torch's ordinal of the device
	// The columns by block, in order of AllocID from 1. Event numbers are below 2^32. A FreeSeq of 0 means that the
	// block was not freed.
	AllocSeq, FreeSeq []uint32
	Requested, Block  []int64       // bytes
	Open              map[int]int64 // [Allocation].OpenBytes by block, where it is not null
	// The owners of block i have the indexes from OwnersFrom[i] up to, but not including, OwnersFrom[i+1].
	OwnersFrom       []uint32
	Place            []uint8  // index of the category in [Categories]
	Evidence         []uint8  // index of the evidence in Evidences
	BeginSeq, EndSeq []uint32 // the owner holds its block from BeginSeq on and before EndSeq; an end of 0 means none
	Evidences        []Evidence
}

// LiveAt reports whether block i counts as allocated just after event seq.
func (l *Lives) LiveAt(i int, seq int64) bool {
	return int64(l.AllocSeq[i]) <= seq && (l.FreeSeq[i] == 0 || int64(l.FreeSeq[i]) > seq)
}

// HoldsAt reports whether owner k holds its block just after event seq.
func (l *Lives) HoldsAt(k uint32, seq int64) bool {
	return int64(l.BeginSeq[k]) <= seq && (l.EndSeq[k] == 0 || int64(l.EndSeq[k]) > seq)
}

// CategoryPlace returns the category's index in [Categories]. An unknown category counts as other.
func CategoryPlace(c Category) int {
	if p := Precedence(c); p < len(Categories) {
		return p
	}
	return Precedence(Other)
}
