package collect

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// cause says why the collector ended a run, if it did.
type cause struct {
	timeout   time.Duration // the time limit that was exceeded
	signal    os.Signal     // the signal that was passed on
	cancelled bool          // whether the context ended
}

// outcome writes into a manifest how a run ended.
func outcome(m *schemas.Manifest, exit treeExit, why cause, journals []*spool.Journal, lastError string) {
	if exit.Signal != 0 {
		name := signalName(exit.Signal)
		m.Signal = &name
	} else {
		m.ExitCode = &exit.Code
	}
	m.Reason = ""
	exception, oom := firstException(journals)
	clean := exit.Code == 0 && exit.Signal == 0
	ended := spool.EndedOf(journals)
	switch {
	case ended != nil && oom == "" && why.signal == nil && !why.cancelled:
		m.Status, m.Reason = schemas.StatusOK, endedReason(ended)
		if !clean { // the prediction has its result, so the script's reaction to being ended does not matter
			m.Warnings = append(m.Warnings, "dpsight ended the script between two steps, and then the script failed: "+
				cmp.Or(exception, lastError, "dpsight had to kill it"))
		}
	case why.timeout > 0:
		m.Status = schemas.StatusTimeout
		m.Reason = fmt.Sprintf("dpsight ended the run after its time limit of %s", why.timeout)
	case why.cancelled:
		m.Status, m.Reason = schemas.StatusKilled, "the collector received a request to stop"
	case clean && why.signal != nil:
		m.Status = schemas.StatusOK
		m.Warnings = append(m.Warnings, "dpsight passed "+signalText(why.signal)+" on to the experiment, and "+
			"the experiment then ended by itself")
	case clean:
		m.Status = schemas.StatusOK
	case oom != "":
		m.Status, m.Reason = schemas.StatusOOM, oom
	case why.signal != nil:
		m.Status, m.Reason = schemas.StatusKilled, "interrupted by "+signalText(why.signal)
	case exit.Signal != 0:
		m.Status, m.Reason = schemas.StatusKilled, "killed by "+*m.Signal
		if *m.Signal == "SIGKILL" {
			m.Reason += "; the kernel also sends it if the host runs out of memory"
		}
	default:
		m.Status, m.Reason = schemas.StatusFailed, exception
		if m.Reason == "" {
			m.Reason = lastError
		}
		if m.Reason == "" {
			m.Reason = fmt.Sprintf("exit code %d", exit.Code)
		}
	}
}

// firstException returns the exception that ended the run, and the out-of-memory error if there was one. Each of them
// is one line. With several ranks, it takes the exception of the rank that stopped writing first, since the other ranks
// fail because they wait for it.
func firstException(journals []*spool.Journal) (exception, oom string) {
	for _, j := range inOrderOfTheirEnds(journals) {
		e := j.Exception
		if e == nil {
			continue
		}
		text := e.Type
		if first, _, _ := strings.Cut(strings.TrimSpace(e.Message), "\n"); first != "" {
			text += ": " + sentences(first, 2)
		}
		if len(journals) > 1 {
			text = fmt.Sprintf("rank %d: %s", j.Rank, text)
		}
		if exception = cmp.Or(exception, text); e.OOM {
			oom = cmp.Or(oom, text)
		}
	}
	return exception, oom
}

// inOrderOfTheirEnds sorts journals by their last marks.
func inOrderOfTheirEnds(journals []*spool.Journal) []*spool.Journal {
	return slices.SortedStableFunc(slices.Values(journals), func(a, b *spool.Journal) int {
		return cmp.Compare(lastMark(a), lastMark(b))
	})
}

func lastMark(j *spool.Journal) int64 {
	if len(j.Marks) == 0 {
		return 0
	}
	return j.Marks[len(j.Marks)-1].TimeNS
}

// sentences returns the first n sentences of a text: torch's message about an out-of-memory error continues with a
// paragraph of advice.
func sentences(text string, n int) string {
	end := 0
	for range n {
		at := strings.Index(text[end:], ". ")
		if at < 0 {
			return text
		}
		end += at + len(". ")
	}
	return strings.TrimSpace(text[:end])
}
