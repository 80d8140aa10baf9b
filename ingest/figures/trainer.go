package figures

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// logRun matches the line in a log of the trainer profiler that names a run.
const logRun = `(?:Trainer: (\w+), Batch Size: (\d+), Seq Length: (\d+), Model: (\w+)|` +
	`Running (\w+) with batch_size=(\d+), seq_len=(\d+))`

var (
	logRunLine   = regexp.MustCompile(`^` + logRun)
	logMoment    = regexp.MustCompile(`^(\w[\w ]*) Memory Usage:$`)
	logFigure    = regexp.MustCompile(`^  (GPU Allocated|GPU Reserved|GPU Max Allocated): ([\d.]+) MB$`)
	logParams    = regexp.MustCompile(`^Model parameters: ([\d,]+) `)
	logError     = regexp.MustCompile(`^(?:❌ )?ERROR in (.+)$`)
	logErrorText = regexp.MustCompile(`^Error (Type|Message): (.*)$`)
)

const logDone = "Single configuration profiling completed successfully"

// logPhases maps the name of a moment in a log to the phase that ends at this moment.
var logPhases = map[string]string{
	"After model creation": schemas.PhaseSetupModel, "After profiling": "training", "After cleanup": "cleanup",
}

// rounded is a note on how exact the figures of a log are.
const rounded = "the file's figures are rounded to 0.1 MiB"

// A logReader reads a log line by line.
type logReader struct {
	runs []Run
	last Memory
	high *int64
	now  struct {
		name string
		Memory
		max *int64
	}
	errType string
}

func readTrainerLog(r io.Reader, name string) ([]Run, error) {
	lines := bufio.NewScanner(limited(r))
	lines.Buffer(nil, 1<<20)
	l := &logReader{}
	for lines.Scan() {
		l.line(strings.TrimRight(lines.Text(), "\r "), name)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	l.moment()
	for i := range l.runs {
		run := &l.runs[i]
		if run.Status == "" {
			run.Notes = append(run.Notes, "the log does not say how the run ended")
			run.Status = schemas.StatusPartial
		}
		run.Notes = append(run.Notes, cpuOr(run, rounded))
	}
	return l.runs, nil
}

// cpuOr returns note, or else, for a run without a GPU, a note that says so.
func cpuOr(run *Run, note string) string {
	if d := &run.Devices[0]; d.Peak == nil && len(d.Phases) == 0 {
		return "the file has no figures of a GPU"
	}
	return note
}

func (l *logReader) line(line, name string) {
	if m := logRunLine.FindStringSubmatch(line); m != nil {
		l.moment()
		l.begin(cmp.Or(m[1], m[5]), cmp.Or(m[2], m[6]), cmp.Or(m[3], m[7]), m[4])
		return
	}
	if m := logMoment.FindStringSubmatch(line); m != nil {
		l.moment()
		l.now.name = m[1]
		return
	}
	if m := logFigure.FindStringSubmatch(line); m != nil && l.now.name != "" {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return
		}
		switch b := bytesOf(&v, mib); m[1] {
		case "GPU Allocated":
			l.now.Allocated = b
		case "GPU Reserved":
			l.now.Reserved = b
		default:
			l.now.max = b
		}
		return
	}
	if len(l.runs) == 0 {
		if !strings.HasPrefix(line, "Model parameters: ") {
			return
		}
		l.runs = append(l.runs, newLogRun(stem(name)))
	}
	run := &l.runs[len(l.runs)-1]
	switch m := logError.FindStringSubmatch(line); {
	case m != nil:
		run.Status, run.Reason = schemas.StatusFailed, "error in "+m[1]
	case strings.Contains(line, logDone) || strings.HasPrefix(line, "✓ Completed profiling for "):
		run.Status = cmp.Or(run.Status, schemas.StatusOK)
	}
	if m := logParams.FindStringSubmatch(line); m != nil {
		if n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64); err == nil {
			run.Params["model_parameters"] = float64(n)
		}
	}
	if m := logErrorText.FindStringSubmatch(line); m != nil && run.Reason != "" {
		l.failed(run, m[1], m[2])
	}
}

// failed records that a run failed, with its error text.
func (l *logReader) failed(run *Run, what, text string) {
	if what == "Type" {
		l.errType = text
		if text == "OutOfMemoryError" {
			run.Status = schemas.StatusOOM
		}
		return
	}
	run.Reason = strings.TrimPrefix(l.errType+": "+text, ": ")
	if strings.Contains(text, "CUDA out of memory") {
		run.Status = schemas.StatusOOM
	}
}

func newLogRun(name string) Run {
	return Run{Name: name, Params: map[string]any{}, Devices: make([]Device, 1)}
}

// begin begins the next run of the log.
func (l *logReader) begin(trainer, batch, length, model string) {
	run := newLogRun(fmt.Sprintf("%s_bs%s_seq%s", trainer, batch, length))
	run.Params["method"] = methodOf(trainer)
	for name, text := range map[string]string{"batch_size": batch, "seq_len": length} {
		if n, err := strconv.ParseUint(text, 10, 32); err == nil {
			run.Params[name] = float64(n)
		}
	}
	if model != "" {
		run.Params["preset"] = model
	}
	l.runs, l.last, l.high, l.errType = append(l.runs, run), Memory{}, nil, ""
}

// moment ends a block of figures in the log, which belong to one moment.
func (l *logReader) moment() {
	now := l.now
	l.now.name, l.now.Memory, l.now.max = "", Memory{}, nil
	if now.name == "" || now.Allocated == nil && now.max == nil {
		return
	}
	if len(l.runs) > 0 {
		d := &l.runs[len(l.runs)-1].Devices[0]
		if phase := logPhases[now.name]; phase != "" {
			d.Phases = append(d.Phases, Phase{Name: phase, Step: -1, Begin: l.last, End: now.Memory,
				Peak: within(l.high, now.max)})
		}
		d.Peak = higher(d.Peak, now.max)
	}
	l.last, l.high = now.Memory, now.max
}

// trainerSummary is the document that summarize_results.py writes about a folder of logs.
type trainerSummary struct {
	Results []struct {
		Config struct {
			Trainer   string   `json:"trainer"`
			BatchSize *float64 `json:"batch_size"`
			SeqLength *float64 `json:"seq_length"`
			ModelSize string   `json:"model_size"`
		} `json:"config"`
		Status      string   `json:"status"`
		ModelParams *float64 `json:"model_params"`
		Memory      map[string]struct {
			AllocatedMB *float64 `json:"gpu_allocated_mb"`
		} `json:"memory_usage"`
		Errors  []string `json:"errors"`
		LogFile string   `json:"log_file"`
	} `json:"detailed_results"`
}

func readTrainerSummary(r io.Reader, name string) ([]Run, error) {
	text, err := document(r)
	if err != nil {
		return nil, err
	}
	var doc trainerSummary
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	runs := make([]Run, 0, len(doc.Results))
	for i := range doc.Results {
		s := &doc.Results[i]
		log := s.LogFile[strings.LastIndexAny(s.LogFile, `/\`)+1:]
		run := newLogRun(cmp.Or(stem(log), fmt.Sprintf("%s_%d", stem(name), i+1)))
		c := &s.Config
		if c.Trainer != "" {
			run.Params["method"] = methodOf(c.Trainer)
		}
		if c.ModelSize != "" {
			run.Params["preset"] = c.ModelSize
		}
		for key, v := range map[string]*float64{"batch_size": c.BatchSize, "seq_len": c.SeqLength} {
			if v != nil {
				run.Params[key] = *v
			}
		}
		if s.ModelParams != nil && *s.ModelParams > 0 {
			run.Params["model_parameters"] = *s.ModelParams
		}
		switch s.Status {
		case "success":
			run.Status = schemas.StatusOK
		case "failed":
			run.Status = schemas.StatusFailed
			if len(s.Errors) > 0 {
				run.Reason = strings.TrimSpace(s.Errors[0])
			}
		default:
			run.Status = schemas.StatusPartial
			run.Notes = append(run.Notes, "the summary does not say how the run ended")
		}
		d := &run.Devices[0]
		last := Memory{bytesOf(s.Memory["initial"].AllocatedMB, mib), nil}
		for _, at := range []struct{ key, phase string }{{"after_model", schemas.PhaseSetupModel},
			{"after_profiling", logPhases["After profiling"]}, {"after_cleanup", logPhases["After cleanup"]}} {
			now := Memory{bytesOf(s.Memory[at.key].AllocatedMB, mib), nil}
			if now.Allocated != nil {
				d.Phases = append(d.Phases, Phase{Name: at.phase, Step: -1, Begin: last, End: now})
				last = now
			}
		}
		if note := cpuOr(&run, rounded); note == rounded {
			run.Notes = append(run.Notes, note, "a summary has no peak: ingest the logs that it was made of")
		} else {
			run.Notes = append(run.Notes, note)
		}
		runs = append(runs, run)
	}
	return runs, nil
}
