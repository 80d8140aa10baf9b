package schemas

// Line is one row of lines.parquet: one line of the user's own code that was executed while the agent followed lines.
type Line struct {
	RunID    string `parquet:"run_id,dict"`   // the run's id, as in run.json
	Rank     int32  `parquet:"rank,dict"`     // the process's RANK, from 0
	Line     int64  `parquet:"line_id,delta"` // number of the line in this table, from 1
	File     string `parquet:"file,dict"`     // file as in [CodeFile]; a whole path if the file is not listed there
	Number   int64  `parquet:"line,dict"`     // number of the line in its file, from 1
	Function string `parquet:"function,dict"` // function that contains the line: "Block.forward"
	// Text is the text of the line, if the reader has the file with the same content as at run time. Text is no column
	// of the table.
	Text string `parquet:"-"`
}

// Lines is lines.parquet. Recordings of older versions have no such table.
var Lines = Table[Line]{Name: "lines", Version: 1}
