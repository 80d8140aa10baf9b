package schemas

import (
	"fmt"
	"os"
)

// ReportFiles is the name of the file beside a report that lists the report's files, one per line.
const ReportFiles = ".dpsight-report"

// A ForeignError says that dpsight would replace a file that it did not write.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string { return e.Path + " is there, and dpsight did not write it" }

// Hint returns advice on how to write the output nevertheless.
func (e *ForeignError) Hint() string { return "name another file, or write over it with --force" }

// CheckOwn returns an error if the file at path has content and own reports that dpsight did not write it. CheckOwn
// protects the files of other programs from being replaced.
func CheckOwn(path string, own func(path string) bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // the path does not exist, or writing will report the error
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a folder", path)
	case !info.Mode().IsRegular() || info.Size() > 0 && !own(path):
		return &ForeignError{path}
	}
	return nil
}
