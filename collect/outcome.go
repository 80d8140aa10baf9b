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
			m.Warnings = append(m.Warnings, "after it was ended between two steps, the script failed: "+
				cmp.Or(exception, lastError, "it had to be killed"))
		}
	case why.timeout > 0:
		m.Status, m.Reason = schemas.StatusTimeout, fmt.Sprintf("it was ended after %s, its time limit", why.timeout)
	case why.cancelled:
		m.Status, m.Reason = schemas.StatusKilled, "the collector was told to stop"
	case clean && why.signal != nil:
		m.Status = schemas.StatusOK
		m.Warnings = append(m.Warnings, fmt.Sprintf("%s was passed on to the experiment, which then ended by itself",
			signalText(why.signal)))
	case clean:
		m.Status = schemas.StatusOK
	case oom != "":
		m.Status, m.Reason = schemas.StatusOOM, oom
	case why.signal != nil:
		m.Status, m.Reason = schemas.StatusKilled, "interrupted by "+signalText(why.signal)
	case exit.Signal != 0:
		m.Status, m.Reason = schemas.StatusKilled, "killed by "+*m.Signal
		if *m.Signal == "SIGKILL" {
			m.Reason += ", which the kernel sends too when the host runs out of memory"
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
