// Package resultjson writes a run as the *_result.json of the component profiler that dpsight replaces. Notebooks and
// scripts that read such files keep working: the keys are the same. The values of the keys are dpsight's, even where
// the profiler's values were wrong.
//
// In a *_result.json "mb" means MiB. A value that the run does not have is null, never 0. The snapshots are an
// exception: the profiler's have no nulls, and readers sort the values and take the highest. So a snapshot with an
// unknown value is left out. The key "dpsight" is new. The value of "dpsight" has the run's id, and whether the run was
// measured or predicted, since a prediction must not pass for a measurement.
package resultjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// Document is the content of one *_result.json.
type Document struct {
	Experiment   string     `json:"experiment"`
	Config       config     `json:"config"`
	AvgTimeMS    *float64   `json:"avg_time_ms"`
	PeakMemoryMB *float64   `json:"peak_memory_mb"`
	Breakdown    breakdown  `json:"breakdown"`
	Snapshots    []snapshot `json:"snapshots"`
	Dpsight      provenance `json:"dpsight"`
}

// config holds the run's parameters. A parameter that the run lacks, as runs of a user's script may, is null.
type config struct {
	VocabSize any `json:"vocab_size"`
	HiddenDim any `json:"hidden_dim"`
	NumLayers any `json:"num_layers"`
	NumHeads  any `json:"num_heads"`
	SeqLen    any `json:"seq_len"`
	BatchSize any `json:"batch_size"`
}

// breakdown has the bytes of the components at the peak, and the totals at the end of the last step.
type breakdown struct {
	ModelParametersMB *float64 `json:"model_parameters_mb"`
	GradientsMB       *float64 `json:"gradients_mb"`
	ActivationHooksMB *float64 `json:"activation_hooks_mb"` // bytes that only DP hooks hold, in MB
	NormSamplesMB     *float64 `json:"norm_samples_mb"`
	TempMatricesMB    *float64 `json:"temp_matrices_mb"`
	OptimizerStatesMB *float64 `json:"optimizer_states_mb"`
	TotalAllocatedMB  *float64 `json:"total_allocated_mb"`
	TotalReservedMB   *float64 `json:"total_reserved_mb"`
	PeakAllocatedMB   *float64 `json:"peak_allocated_mb"`
}

type snapshot struct {
	Name           string  `json:"name"`
	AllocatedMB    float64 `json:"allocated_mb"`
	ReservedMB     float64 `json:"reserved_mb"`
	MaxAllocatedMB float64 `json:"max_allocated_mb"`
	Timestamp      float64 `json:"timestamp"` // seconds since the epoch
}

type provenance struct {
	RunID   string  `json:"run_id"`
	Status  string  `json:"status"`
	Source  string  `json:"source"` // measured, predicted or imported
	Profile *string `json:"profile"`
	// ActivationHooksHeldMB is the MiB that DP hooks hold. Autograd holds nearly all of these bytes too.
	ActivationHooksHeldMB *float64 `json:"activation_hooks_held_mb"`
	Warnings              []string `json:"warnings"`
}

// New makes the document of a run.
func New(p analyze.ComponentProfile) Document {
	param := func(key string) any { return p.Params[key] }
	d := Document{Experiment: experiment(&p), AvgTimeMS: p.MeanStepMS, PeakMemoryMB: mb(p.PeakBytes),
		Config: config{param("vocab_size"), param("hidden_dim"), param("num_layers"), param("num_heads"),
			param("seq_len"), param("batch_size")},
		Breakdown: breakdown{TotalAllocatedMB: mb(p.EndAllocated), TotalReservedMB: mb(p.EndReserved),
			PeakAllocatedMB: mb(p.PeakBytes)},
		Dpsight: provenance{RunID: p.RunID, Status: p.Status, Source: p.Source, Profile: p.Profile,
			ActivationHooksHeldMB: mb(p.HeldByHooks), Warnings: report.RunWords(p.Remarks)}}
	if c := p.Components; c != nil {
		b := &d.Breakdown
		b.ModelParametersMB, b.GradientsMB, b.ActivationHooksMB = mb(&c.Parameters), mb(&c.Gradients),
			mb(&c.HookActivations)
		b.NormSamplesMB, b.TempMatricesMB, b.OptimizerStatesMB = mb(&c.NormSamples), mb(&c.ClipTemporaries),
			mb(&c.OptimizerState)
	}
	d.Snapshots = snapshots(&p, d.Experiment == "vanilla")
	return d
}

// snapshots returns the points at which all values are known, in the order in which the profiler lists them. dpsight's
// experiments make the optimizer before they wrap the model, while the profiler's experiments wrap the model first. A
// run makes twice as many steps as requested, since half of them are bare, and records the events of some. The recorded
// steps are numbered from 0 and are at most as many as requested: notebooks rely on both.
func snapshots(p *analyze.ComponentProfile, plain bool) []snapshot {
	asked, limited := p.Params["num_iter"].(float64)
	number := map[int]int{} // index by iteration of the run
	out := []snapshot{}
	for i := range p.Points {
		at := &p.Points[i]
		if plain && at.Point < analyze.AfterWarmup { // the profiler makes no snapshots of the set-up of plain training
			continue
		}
		if at.Allocated == nil || at.Reserved == nil || at.Highest == nil || at.TimeNS == nil {
			continue
		}
		iteration := -1
		if at.Iteration >= 0 {
			n, ok := number[at.Iteration]
			if !ok {
				n = len(number)
				number[at.Iteration] = n
			}
			if limited && float64(n) >= asked {
				continue
			}
			iteration = n
		}
		out = append(out, snapshot{Name: pointName(at.Point, iteration, plain), AllocatedMB: *mb(at.Allocated),
			ReservedMB:     *mb(at.Reserved),
			MaxAllocatedMB: *mb(at.Highest), Timestamp: float64(*at.TimeNS) / 1e9})
	}
	slices.SortStableFunc(out, func(a, b snapshot) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return out
}

// pointName returns the profiler's name of a point. iteration is -1 for a point outside all iterations. For plain
// training, the profiler begins to count after the warm-up.
func pointName(point analyze.Point, iteration int, plain bool) string {
	place := map[analyze.Point]string{analyze.ModelLoaded: "model_loaded", analyze.WrappedWithDP: "wrapped_with_dp",
		analyze.OptimizerCreated: "optimizer_created",
		analyze.AfterWarmup:      "after_warmup", analyze.BeforeForward: "before_forward",
		analyze.AfterForward:  "after_forward",
		analyze.AfterBackward: "after_backward", analyze.AfterStep: "after_step"}[point]
	number := int(point)
	if plain {
		number -= int(analyze.AfterWarmup) - 1
	}
	if iteration >= 0 {
		return fmt.Sprintf("%d_iter%d_%s", number, iteration, place)
	}
	return fmt.Sprintf("%d_%s", number, place)
}

// renamed maps dpsight's names of methods to the profiler's.
var renamed = map[string]string{"flash": "flash_clip", "bk": "bookkeeping", "flash_bk": "flash_clip_bookkeeping"}

// experiment returns the profiler's name of the method, or else the run's own name.
func experiment(p *analyze.ComponentProfile) string {
	m := p.Method()
	if name, ok := renamed[m]; ok {
		return name
	}
	if m != "" {
		return m
	}
	return runName(p)
}

func runName(p *analyze.ComponentProfile) string {
	if p.Name != "" {
		return p.Name
	}
	return p.RunID
}

// WriteAll writes runs to out. A single run goes to the file out. Several runs go to a folder, one file each. A single
// run goes to a folder too if the folder exists, or if out ends with a slash. WriteAll returns the paths of files that
// it wrote into a folder. Without force it overwrites only files that an export wrote. If there is any other file at a
// path, it writes nothing ([schemas.ForeignError]).
func WriteAll(out string, profiles []analyze.ComponentProfile, force bool) (paths []string, err error) {
	defer func() {
		var p *os.PathError
		if errors.As(err, &p) {
			err = fmt.Errorf("%s: %w", p.Path, p.Err)
		}
		if foreign := (*schemas.ForeignError)(nil); errors.As(err, &foreign) {
			return
		}
		if err != nil {
			err = schemas.WithHint(fmt.Errorf("the export cannot be written: %w", err), "name another file or folder with -o")
		}
	}()
	if len(profiles) == 1 && !IsFolder(out) {
		if err := checkOwn(force, out); err != nil {
			return nil, err
		}
		return nil, schemas.WriteFile(out, New(profiles[0]).Write)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	names := FileNames(profiles)
	for _, name := range names {
		if err := checkOwn(force, filepath.Join(out, name)); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		path := filepath.Join(out, name)
		if err := schemas.WriteFile(path, New(profiles[i]).Write); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func checkOwn(force bool, path string) error {
	if force {
		return nil
	}
	return schemas.CheckOwn(path, IsExport)
}

// IsExport reports whether an export wrote a file.
func IsExport(path string) bool {
	var head struct {
		Dpsight *struct {
			RunID string `json:"run_id"`
		} `json:"dpsight"`
	}
	b, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(b, &head) == nil && head.Dpsight != nil && head.Dpsight.RunID != ""
}

// IsFolder reports whether a path means a folder, even one that does not exist yet.
func IsFolder(name string) bool {
	if name == "" {
		return false
	}
	st, err := os.Stat(name)
	return err == nil && st.IsDir() || name[len(name)-1] == '/' || os.IsPathSeparator(name[len(name)-1])
}

// FileNames returns a different file name for each run: NAME_result.json, with the run's id if several runs share a
// name. A run with its method's name gets the profiler's name of that method.
func FileNames(profiles []analyze.ComponentProfile) []string {
	names, count := make([]string, len(profiles)), map[string]int{}
	for i := range profiles {
		p := &profiles[i]
		names[i] = runName(p)
		if names[i] == p.Method() {
			names[i] = experiment(p)
		}
		names[i] = units.FileName(names[i])
		count[strings.ToLower(names[i])]++ // some file systems ignore case
	}
	for i := range profiles {
		if count[strings.ToLower(names[i])] > 1 {
			names[i] = units.FileName(profiles[i].RunID)
		}
		names[i] += "_result.json"
	}
	return names
}

// Write writes the document as the profiler does, indented by two.
func (d Document) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

func mb(bytes *int64) *float64 {
	if bytes == nil {
		return nil
	}
	v := float64(*bytes) / (1 << 20)
	return &v
}
