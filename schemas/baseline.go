package schemas

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// BaselineSchema is the version that this package writes.
const BaselineSchema = "dpsight.baseline/2"

// undigestedBaseline is the version before, which is read too: it has no digest.
const undigestedBaseline = "dpsight.baseline/1"

// Baseline is what "dpsight check --write-baseline" writes: a small document to commit, which later runs are held to.
// It is sorted and indented, so that a change of one figure is a change of one line.
type Baseline struct {
	Schema      string               `json:"schema"`
	Version     string               `json:"version"` // of the dpsight that wrote it
	Experiments []BaselineExperiment `json:"experiments"`
}

// Undigested reports whether the document has no digest, so that nothing tells when it is damaged.
func (b *Baseline) Undigested() bool { return b.Schema == undigestedBaseline }

// BaselineExperiment is one experiment: the median of its runs that ended well.
type BaselineExperiment struct {
	// Key is the hash of the experiment's content that its suite gave it; null outside a suite.
	Key    *string        `json:"key"`
	Name   string         `json:"name"`
	Params map[string]any `json:"params"`
	// Command is the command of a user's script, with secrets masked and the program without its folder. It tells
	// runs with the same name and parameters apart. It is absent if a suite or the parameters determine it, and in
	// older documents.
	Command []string `json:"command,omitempty"`
	// Source and Profile say how the figures are known; see [Manifest].
	Source  string  `json:"source"`
	Profile *string `json:"profile"`
	// Confidence is how sure a predicted peak is; empty for measured runs. See [Confidence].
	Confidence string `json:"confidence,omitempty"`
	// Doubts are the kinds of doubt about a predicted peak, from [Doubts]. It is empty if there are none, and in
	// older documents.
	Doubts []string `json:"doubts,omitempty"`
	// Status is ok if every run ended well. Otherwise it is the status of the first run that did not, and Reason is
	// that run's reason.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Runs   int    `json:"runs"` // that ended well
	// The bytes come from the run with the median peak, for an even number of runs the lower of the middle two. So
	// the categories sum to the peak of a real run. Null if unknown.
	PeakBytes *int64 `json:"peak_bytes"` // highest allocated
	// PeakHighBytes is what PeakBytes may be at most, where sizes of blocks from before recording are not known; null
	// elsewhere, and in older documents.
	PeakHighBytes     *int64 `json:"peak_high_bytes,omitempty"`
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"` // highest reserved
	PeakDeviceBytes   *int64 `json:"peak_device_bytes"`   // NVML
	// Allocations is how many blocks were allocated while events were recorded; null if there were no events, and
	// in older baselines.
	Allocations *int64 `json:"allocations"` // blocks
	// Categories sum to PeakBytes. Empty ones are left out. Null if the peak is not broken down.
	Categories map[Category]int64 `json:"categories"`
	// Rules is the version of the rules that made Categories; null where those are, and unknown in documents of before it
	// was kept. See [BaselineExperiment.OtherRules].
	Rules *int `json:"rules,omitempty"`
	// PhasePeaks is the highest allocated in each phase; null where unknown.
	PhasePeaks      map[string]int64 `json:"phase_peak_bytes"`
	StepMS          *BaselineTime    `json:"step_ms"`           // null for predicted runs
	SamplesPerS     *float64         `json:"samples_per_s"`     // median over runs; null = not known
	TokensPerS      *float64         `json:"tokens_per_s"`      // median over runs; null = not known
	JoulesPerSample *float64         `json:"joules_per_sample"` // median over runs; null = not known
	Versions        Versions         `json:"versions"`
	// Acknowledged are the regressions that are accepted for a while; absent if there are none.
	Acknowledged []Acknowledgement `json:"acknowledged,omitempty"`
	// Places are the largest parts of the peak by category, module and line. They are absent if the peak is not
	// broken down, in baselines of very many experiments, and in older documents.
	Places []BaselinePlace `json:"places,omitempty"`
	// RunID is the id of the run with the median peak. The document leaves it out.
	RunID string `json:"-"`
	// Gone lists tables that were removed from the runs, as file names. Values that need them are null. A document
	// does not have it.
	Gone []string `json:"-"`
}

// BaselinePlace is what an experiment holds at its peak of one category, for one module, asked for by one line.
type BaselinePlace struct {
	Category Category `json:"category"`
	Module   string   `json:"module,omitempty"` // its path, with a star for the numbers of layers; empty = not known
	// File is relative to its repository, as in [CodeFile]; empty if the line is unknown.
	File     string `json:"file,omitempty"`
	Line     int64  `json:"line,omitempty"` // from 1
	Function string `json:"function,omitempty"`
	Bytes    int64  `json:"bytes"` // of the median run, at its peak
}

// Acknowledgement lets one metric of an experiment be worse than its threshold allows, for a while.
type Acknowledgement struct {
	Metric string  `json:"metric"` // as a threshold names it
	UpTo   float64 `json:"up_to"`  // the worst value that passes, in the metric's unit
	Until  string  `json:"until"`  // the last day on which it counts, in UTC: 2026-12-31
	By     string  `json:"by"`
	Why    string  `json:"why"`
}

// OtherRules reports whether different rules made the categories of two experiments, so that these are not
// comparable. An unknown version differs from any known one.
func (e *BaselineExperiment) OtherRules(o *BaselineExperiment) bool {
	return e.Categories != nil && o.Categories != nil && e.RulesVersion() != o.RulesVersion()
}

// RulesVersion is [BaselineExperiment.Rules], 0 = unknown.
func (e *BaselineExperiment) RulesVersion() int {
	if e.Rules == nil {
		return 0
	}
	return *e.Rules
}

// BaselineTime is a time in milliseconds: a run's median step, or the median of these over several runs.
type BaselineTime struct {
	Median float64 `json:"median"` // ms
	// Low and High surround the median: a confidence interval if there are enough values, else their range.
	Low   float64 `json:"low"`   // ms
	High  float64 `json:"high"`  // ms
	Clock string  `json:"clock"` // gpu or wall
	// Runs are the median steps of the runs in ms, if there are several; absent for one, and in older documents.
	Runs []float64 `json:"runs,omitempty"`
}

// Versions are the versions that a figure depends on, besides the experiment. Null if unknown.
type Versions struct {
	Torch  *string `json:"torch"`
	CUDA   *string `json:"cuda"`
	Opacus *string `json:"opacus"`
	GPU    *string `json:"gpu"` // of a predicted run, the one that was pretended
	Driver *string `json:"driver"`
	// Revision is the revision of the script's repository, with a plus sign if files had changed since. Code is the
	// digest of the executed code, and Agent the digest of the agent that recorded it. Each is absent if unknown,
	// and in older documents.
	Revision *string `json:"revision,omitempty"`
	Code     *string `json:"code,omitempty"`
	Agent    *string `json:"agent,omitempty"`
}

// ReadBaseline reads a baseline document.
func ReadBaseline(path string) (*Baseline, error) {
	text, err := os.ReadFile(path) // a pipe too: it is named by a user, who may take it from another revision
	if err != nil {
		return nil, err
	}
	b := new(Baseline)
	if err := decodeDocument(path, text, BaselineSchema, b, undigestedBaseline); err != nil {
		return nil, err
	}
	for i := range b.Experiments {
		if e := &b.Experiments[i]; e.Name == "" || e.Status == "" {
			return nil, fmt.Errorf("%s: experiment %d has no name or no status", filepath.Base(path), i+1)
		}
	}
	return b, nil
}

// IsBaseline reports whether a file is a baseline, of whatever version and whether or not it can still be read whole.
func IsBaseline(path string) bool {
	var head struct {
		Schema string `json:"schema"`
	}
	b, err := ReadRegular(path)
	return err == nil && json.Unmarshal(b, &head) == nil && strings.HasPrefix(head.Schema, "dpsight.baseline/")
}

// WriteBaseline writes a baseline document.
func WriteBaseline(path string, b *Baseline) error {
	b.Schema = BaselineSchema
	return WriteDocument(path, b)
}
