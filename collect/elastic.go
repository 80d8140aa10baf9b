package collect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An elasticReport reads from torchrun's output which of its processes failed first. When a rank has failed, torchrun
// prints a report between lines of signs. If a process died without an exception, the report is the only trace of it.
type elasticReport struct {
	cause bool // whether the following lines describe the root cause
	rank  string
	code  string
}

var elasticField = regexp.MustCompile(`^\s*(rank|exitcode)\s*:\s*(-?\d+)\b`)

func (e *elasticReport) line(text string) {
	if strings.HasPrefix(text, "Root Cause (first observed failure)") {
		*e = elasticReport{cause: true}
		return
	}
	if !e.cause || e.code != "" {
		return
	}
	switch m := elasticField.FindStringSubmatch(text); {
	case m == nil:
	case m[1] == "rank":
		e.rank = m[2]
	default:
		e.code = m[2]
	}
}

// String returns the report as a sentence, or "" if the launcher printed none.
func (e *elasticReport) String() string {
	code, err := strconv.Atoi(e.code)
	switch {
	case e.rank == "" || err != nil:
		return ""
	case code < 0:
		return fmt.Sprintf("rank %s was killed by %s", e.rank, signalName(-code))
	}
	return fmt.Sprintf("rank %s ended with exit code %d", e.rank, code)
}

// isRule reports whether a line consists only of signs.
func isRule(line string) bool { return strings.Trim(line, "=-*#_~ \t") == "" }
