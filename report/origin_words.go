package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// originWords say which runs were pooled and which were not, and how a run's code differs from its baseline's.
func originWords(r *compare.Remark) string {
	const most = 4
	names := schemas.Shortlist(r.Names, most)
	switch r.Kind {
	case compare.RemarkExperiments:
		return fmt.Sprintf("%d different experiments have no common median: %s; separate them with --rows or --cols", r.N,
			strings.Join(r.Names[:min(most, len(r.Names))], " | "))
	case compare.RemarkPooled:
		if r.What == string(identity.PartRevision) {
			return fmt.Sprintf("the %d repeats are of revisions %s, with the same code", r.N, names)
		}
		return fmt.Sprintf("dpsight %[2]s recorded the %[1]d repeats, with the same agent", r.N, names)
	case compare.RemarkCodeUnknown:
		return fmt.Sprintf("%d of %d repeats do not name their code, so dpsight could not check that it is the same",
			r.N, r.Of)
	case compare.RemarkCode:
		return otherCodeWords(r, names)
	}
	panic("no words for the remark " + string(r.Kind))
}

// otherCodeWords name the files of a run that differ from its baseline's files, and the revisions of both.
func otherCodeWords(r *compare.Remark, names string) string {
	text := "not the same code as the baseline's"
	if len(r.Names) > 0 {
		differ := "differ"
		if len(r.Names) == 1 {
			differ = "differs"
		}
		text += ": " + names + " " + differ
	}
	if r.Now != "" {
		text += fmt.Sprintf(" (revision %s, baseline %s)", r.Now, r.Baseline)
	}
	return text
}
