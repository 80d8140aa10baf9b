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

// undigestedBaseline is the version before [BaselineSchema]. Documents of this version can still be read, and have no
// digest.
const undigestedBaseline = "dpsight.baseline/1"

// Baseline is what "dpsight check --write-baseline" writes: a small document to commit, which later runs are compared
// with. A baseline is sorted and indented, so that a change of one figure changes one line.
type Baseline struct {
	Schema      string               `json:"schema"`
	Version     string               `json:"version"` // version of the dpsight that wrote the baseline
	Experiments []BaselineExperiment `json:"experiments"`
}

// Undigested reports whether the document has no digest, so that damage to it cannot be noticed.
func (b *Baseline) Undigested() bool { return b.Schema == undigestedBaseline }

// BaselineExperiment is one experiment: medians over its runs that ended well.
type BaselineExperiment struct {
	// Key is the hash of the experiment's content that its suite gave it; null outside a suite.
	Key    *string        `json:"key"`
	Name   string         `json:"name"`
	Params map[string]any `json:"params"`
	// Command is the command of a user's script, with secrets masked and the program without its folder. The command
	// distinguishes runs with the same name and parameters. Command is absent if a suite or the parameters determine
	// the command, and in older documents.
	Command []string `json:"command,omitempty"`
	// Source and Profile say whether the figures were measured, predicted or imported, and the device profile of a
	// prediction; see [Manifest].
	Source  string  `json:"source"`
	Profile *string `json:"profile"`
	// Confidence is the level of confidence in a predicted peak; empty for measured runs. See [Confidence].
	Confidence string `json:"confidence,omitempty"`
	// Doubts are the kinds of doubt about a predicted peak, from [Doubts]. Doubts is empty if there are no doubts,
	// and in older documents.
	Doubts []string `json:"doubts,omitempty"`
	// Status is ok if every run ended well. Otherwise Status and Reason are those of the first run that did not end
	// well.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Runs   int    `json:"runs"` // number of runs that ended well
	// The bytes come from the run with the median peak; for an even number of runs, from the lower of the middle two.
	// So the categories sum to the peak of one run. Unknown bytes are null.
	PeakBytes *int64 `json:"peak_bytes"` // highest allocated
	// PeakHighBytes is the upper bound of a peak that depends on blocks of unknown size from before recording.
	// PeakHighBytes is null for all other peaks, and in older documents.
	PeakHighBytes     *int64 `json:"peak_high_bytes,omitempty"`
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"` // highest reserved
	PeakDeviceBytes   *int64 `json:"peak_device_bytes"`   // highest device memory in use, by NVML
	// Allocations is how many blocks were allocated while events were recorded; null if there were no events, and
	// in older baselines.
	Allocations *int64 `json:"allocations"` // number of blocks
	// Categories sum to PeakBytes. Categories without bytes are left out. Categories is null if the peak is not
	// broken down.
	Categories map[Category]int64 `json:"categories"`
	// Rules is the version of the rules that made Categories. Rules is null if Categories is null, and in older
	// documents. See [BaselineExperiment.OtherRules].
	Rules *int `json:"rules,omitempty"`
	// PhasePeaks is the highest allocated in each phase; null if unknown.
	PhasePeaks      map[string]int64 `json:"phase_peak_bytes"`
	StepMS          *BaselineTime    `json:"step_ms"`           // null for predicted runs
	SamplesPerS     *float64         `json:"samples_per_s"`     // median over runs; null = not known
	TokensPerS      *float64         `json:"tokens_per_s"`      // median over runs; null = not known
	JoulesPerSample *float64         `json:"joules_per_sample"` // median over runs; null = not known
	Versions        Versions         `json:"versions"`
	// Acknowledged lists the regressions that are accepted for a while; absent if there are none.
	Acknowledged []Acknowledgement `json:"acknowledged,omitempty"`
	// Places are the largest parts of the peak by category, module and line. Places are absent if the peak is not
	// broken down, in baselines of very many experiments, and in older documents.
	Places []BaselinePlace `json:"places,omitempty"`
	// RunID is the id of the run with the median peak. The document leaves RunID out.
	RunID string `json:"-"`
	// Gone lists the files of tables that somebody removed from the runs. Values that need a removed table are null.
	// The document leaves Gone out.
	Gone []string `json:"-"`
}

// BaselinePlace is a part of an experiment's peak: the bytes of one category, of one module, that one line requested.
type BaselinePlace struct {
	Category Category `json:"category"`
	Module   string   `json:"module,omitempty"` // path of the module, with a star for numbers of layers; empty = not known
	// File is relative to its repository, as in [CodeFile]; empty if the line is unknown.
	File     string `json:"file,omitempty"`
	Line     int64  `json:"line,omitempty"` // number of the line, from 1
	Function string `json:"function,omitempty"`
	Bytes    int64  `json:"bytes"` // bytes of the part at the peak of the median run
}

// Acknowledgement lets one metric of an experiment be worse than its threshold allows, for a while.
type Acknowledgement struct {
	Metric string  `json:"metric"` // the metric's name, as in thresholds
	UpTo   float64 `json:"up_to"`  // the worst value that passes, in the metric's unit
	Until  string  `json:"until"`  // the last day on which the acknowledgement counts, in UTC: 2026-12-31
	By     string  `json:"by"`
	Why    string  `json:"why"`
}

// OtherRules reports whether different rules made the categories of two experiments, so that the categories are not
// comparable. An unknown version differs from any known one.
func (e *BaselineExperiment) OtherRules(o *BaselineExperiment) bool {
	return e.Categories != nil && o.Categories != nil && e.RulesVersion() != o.RulesVersion()
}

// RulesVersion returns [BaselineExperiment.Rules], or 0 if it is unknown.
func (e *BaselineExperiment) RulesVersion() int {
	if e.Rules == nil {
		return 0
	}
	return *e.Rules
}

// BaselineTime is a time in milliseconds: a run's median step, or the median over several runs of their median steps.
type BaselineTime struct {
	Median float64 `json:"median"` // ms
	// Low and High surround the median: a confidence interval if there are enough values, else the range of the
	// values.
	Low   float64 `json:"low"`   // ms
	High  float64 `json:"high"`  // ms
	Clock string  `json:"clock"` // gpu or wall
	// Runs are the median steps of the runs in ms, if there are several runs; absent for a single run, and in older
	// documents.
	Runs []float64 `json:"runs,omitempty"`
}

// Versions are the versions of software and hardware on which a run's figures depend. A version is null if unknown.
type Versions struct {
	Torch  *string `json:"torch"`
	CUDA   *string `json:"cuda"`
	Opacus *string `json:"opacus"`
	GPU    *string `json:"gpu"` // for a predicted run, the GPU that the phantom GPU presents
	Driver *string `json:"driver"`
	// Revision is the revision of the script's repository, with a plus sign if files had changed since. Code is the
	// digest of the executed code, and Agent the digest of the agent that recorded it. Revision, Code and Agent are
	// each absent if unknown, and in older documents.
	Revision *string `json:"revision,omitempty"`
	Code     *string `json:"code,omitempty"`
	Agent    *string `json:"agent,omitempty"`
}

// ReadBaseline reads a baseline document.
func ReadBaseline(path string) (*Baseline, error) {
	text, err := os.ReadFile(path) // the path may be a pipe: a user may read the baseline from another revision
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

// IsBaseline reports whether a file is a baseline of any version, even if parts of it can no longer be read.
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
