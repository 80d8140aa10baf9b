package selected

import (
	"fmt"
	"os"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/schemas"
)

// ReadBaseline reads a baseline document, or makes one of the runs that a name stands for, without those that leave
// takes out. what is how the reader calls it, version that of dpsight.
func (s *Source) ReadBaseline(what, name, version string, leave Leaver) (b *schemas.Baseline, ofRuns bool, err error) {
	if IsFile(name) {
		b, err := schemas.ReadBaseline(name)
		if err != nil {
			return nil, false, &adviceError{fmt.Errorf("%s: %w", what, err),
				"dpsight check --write-baseline FILE writes one"}
		}
		return b, false, nil
	}
	if strings.HasSuffix(name, ".json") {
		return nil, false, &adviceError{fmt.Errorf("%s %s does not exist", what, name),
			"dpsight check --write-baseline FILE RUN… writes one from runs"}
	}
	_, runs, err := s.Summaries([]string{name}, leave)
	if err != nil {
		return nil, false, err
	}
	doc := gate.BaselineOf(s.Newest(runs), version)
	return &doc, true, nil
}

// ReadBaselines reads several as one.
func (s *Source) ReadBaselines(what string, names []string, version string, leave Leaver) (all schemas.Baseline,
	err error) {
	for _, name := range names {
		b, _, err := s.ReadBaseline(what, name, version, leave)
		if err != nil {
			return all, err
		}
		all.Experiments = append(all.Experiments, b.Experiments...)
	}
	return all, nil
}

// IsFile tells a file from the name of a run.
func IsFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

// Newest leaves out what later runs have replaced.
func (s *Source) Newest(runs []analyze.Summary) []analyze.Summary {
	kept, left := gate.Newest(runs)
	for _, l := range left {
		s.Note(l)
	}
	return kept
}
