package schemas

// HostMark is one row of host_marks.parquet: the host memory that one process had at a mark. The table has a row for
// each mark between phases of instrumented steps, and for the beginning of each step with phases.
type HostMark struct {
	RunID       string `parquet:"run_id,dict"`           // the run's id, as in run.json
	Rank        int32  `parquet:"rank,dict"`             // the process's RANK, from 0
	K           int64  `parquet:"k,delta"`               // number of the mark
	TimeNS      int64  `parquet:"time_ns,delta"`         // ns, Unix time
	RSSBytes    int64  `parquet:"rss_bytes,delta"`       // resident memory of the process
	PinnedBytes *int64 `parquet:"pinned_bytes,optional"` // page-locked bytes, in use or kept by torch; null = not known
}

// HostMarks is host_marks.parquet. Recordings of older versions have no such table.
var HostMarks = Table[HostMark]{Name: "host_marks", Version: 1}
