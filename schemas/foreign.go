package schemas

import (
	"fmt"
	"os"
)

// ReportFiles is the name of the list of a report's files, which lies beside them: a line each.
const ReportFiles = ".dpsight-report"

// A ForeignError says that a file is in the way that dpsight did not write.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string { return e.Path + " is there, and dpsight did not write it" }

// Hint says what helps.
func (e *ForeignError) Hint() string { return "name another file, or write over it with --force" }

// CheckOwn refuses to let a file be replaced that is there, has content and is none of dpsight's own, by what own says
// of it.
func CheckOwn(path string, own func(path string) bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // there is none, or writing says what is wrong
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a folder", path)
	case !info.Mode().IsRegular() || info.Size() > 0 && !own(path):
		return &ForeignError{path}
	}
	return nil
}
