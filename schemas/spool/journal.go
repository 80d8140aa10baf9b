package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// ProcessInfo is the payload of the first frame: the recorded process's rank, ids and mode, as the agent reports them.
type ProcessInfo struct {
	PID       int64  `json:"pid"`
	PPID      int64  `json:"ppid"`
	StartNS   int64  `json:"start_ns"`
	Rank      *int32 `json:"rank"` // RANK of a launcher; null without one
	LocalRank *int32 `json:"local_rank"`
	WorldSize *int32 `json:"world_size"`
	Mode      string `json:"mode"`   // how much is recorded: full, bare
	Source    string `json:"source"` // the kind of device: measured, predicted
	Python    string `json:"python"`
	Torch     string `json:"torch"`
	Forked    int32  `json:"forked"` // how many forks lie between this process and the one that exec'ed
	Warmup    int32  `json:"warmup"`
	// ModuleTimes is true if instrumented steps have CUDA events around modules. Older agents recorded CUDA events only
	// at the marks of phases.
	ModuleTimes bool `json:"module_times"`
}

// ModuleInfo is a torch module as the agent saw it.
type ModuleInfo struct {
	ID             uint32  `json:"id"`
	Path           string  `json:"path"`
	Class          string  `json:"class"`
	ParameterBytes int64   `json:"parameter_bytes"` // bytes of the module's own parameters, without its children's
	NormBy         *string `json:"norm_by"`
	First          bool    `json:"-"` // first of its frame: a model's modules are in one frame, itself before its parts
}

// Checkpoint has torch's own counters of the allocator at one drain.
type Checkpoint struct {
	Drain     int64              `json:"drain"` // number of the drain; 0 = when recording began
	K         uint32             `json:"k"`
	Reason    string             `json:"reason"` // start, step, oom, exit, full, request, script, window
	TimeNS    int64              `json:"time_ns"`
	DrainNS   int64              `json:"drain_ns"`
	Recording bool               `json:"recording"` // events were recorded up to this drain
	Devices   []DeviceCheckpoint `json:"devices"`
}

// DeviceCheckpoint is one device's part of a [Checkpoint]: the values of torch.cuda.memory_stats under torch's keys
// ("allocated_bytes.all.current").
type DeviceCheckpoint struct {
	Device int32            `json:"device"`
	Events int64            `json:"events"` // number of events in the allocator frame before this one
	Stats  map[string]int64 `json:"stats"`
}

// DeviceInfo says which GPU has one of torch's device ordinals, since CUDA_VISIBLE_DEVICES may renumber GPUs.
type DeviceInfo struct {
	Device int32   `json:"device"`
	UUID   *string `json:"uuid"` // the UUID as torch reports it, without NVML's "GPU-"; null if torch does not
}

// OOMInfo is a request for memory that failed, as the agent reports it.
type OOMInfo struct {
	K         uint32 `json:"k"`
	Device    int32  `json:"device"`
	Requested int64  `json:"requested"`
	Limit     int64  `json:"limit"`
	Free      int64  `json:"free"`
	TimeNS    int64  `json:"time_ns"`
	Module    uint32 `json:"module"` // module that made the request, if no mark shows it; 0 = none
	// Line is the line of the script that the requesting thread was on. In backward it is the line of the thread that
	// waits for the requesting thread. The agent reports the line even if it does not follow lines. 0 = no line is
	// known, as in older journals.
	Line uint32 `json:"line"`
	// Recorded is true if events were being recorded. Recorded is nil in older journals, in which the events themselves
	// show this.
	Recorded *bool `json:"recorded"`
	Listed   bool  `json:"listed"` // no events were recorded, and a drain with a list of blocks follows
}

// ExceptionInfo is the exception that ended the process.
type ExceptionInfo struct {
	Type    string `json:"type"`
	Message string `json:"message"` // first line of the error, with secrets masked
	OOM     bool   `json:"oom"`
}

// FailureInfo is a hook of the agent that has failed. The agent no longer calls this hook.
type FailureInfo struct {
	Hook   string `json:"hook"`
	Error  string `json:"error"` // the error in one line, with secrets masked
	TimeNS int64  `json:"time_ns"`
	Fatal  bool   `json:"fatal"` // nothing was recorded after the failure
}

// MetricInfo is one value that the script reported with dpsight.metric.
type MetricInfo struct {
	K      uint32  `json:"k"`
	TimeNS int64   `json:"time_ns"`
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
}

// PredictionInfo has the unknown reads, assumptions and estimates that the phantom GPU has reported so far; see
// schemas.Prediction.
type PredictionInfo struct {
	Reads       []schemas.Counted `json:"reads"`
	Guesses     []schemas.Counted `json:"guesses"`
	Assumptions []schemas.Counted `json:"assumptions"` // absent from journals of older agents
	AssumedAt   []schemas.Counted `json:"assumed_at"`  // absent from journals of older agents
	Copied      []schemas.Counted `json:"copied"`      // absent from journals of older agents
	Notes       []string          `json:"notes"`
	Compiled    bool              `json:"compiled"`
	Garbage     *schemas.Garbage  `json:"garbage"` // absent from journals of older agents
	Ended       *schemas.Ended    `json:"ended"`   // null if the agent did not end the script
	// Suspects are the reads of unknown values that may have made the script fail, the likeliest first.
	Suspects []string `json:"suspects"`
}

// EndedOf returns after which step the agents of a prediction ended the script, and why. Of several processes, it takes
// the one with the most steps. EndedOf returns nil if the script ended by itself.
func EndedOf(journals []*Journal) (ended *schemas.Ended) {
	for _, j := range journals {
		if p := j.Prediction; p != nil && p.Ended != nil && (ended == nil || p.Ended.Step > ended.Step) {
			ended = p.Ended
		}
	}
	return ended
}

// GarbageOf sums the memory that Python's garbage collectors freed in all processes. GarbageOf returns nil if no agent
// reported it.
func GarbageOf(journals []*Journal) *schemas.Garbage {
	var all *schemas.Garbage
	for _, j := range journals {
		if j.Prediction == nil || j.Prediction.Garbage == nil {
			continue
		}
		if all == nil {
			all = new(schemas.Garbage)
		}
		all.CollectedBytes += j.Prediction.Garbage.CollectedBytes
		all.LeftBytes += j.Prediction.Garbage.LeftBytes
	}
	return all
}

// LinesInfo has the lines of the script that the agent followed, and how much time that took.
type LinesInfo struct {
	// Lines are [number, file, line, function]. Allocator events refer to these numbers, after the numbers of
	// marks.
	Lines  []LineInfo `json:"lines"`
	By     string     `json:"by"`     // the source of line events: monitoring, tracing; empty = none
	Reason string     `json:"reason"` // why there is no source of line events, or no longer
	// Skipped is how many instrumented steps have no lines, since earlier steps had used up the time for lines.
	Skipped int64 `json:"skipped"`
	// The next three fields say how much following lines has cost so far.
	Events  int64 `json:"events"`   // number of lines reached, functions left and nodes run
	SpentNS int64 `json:"spent_ns"` // estimated from the time of one event, measured at the beginning
	WallNS  int64 `json:"wall_ns"`  // ns since lines could be followed
}

// LineInfo is one line of the user's code.
type LineInfo struct {
	ID       uint32
	File     string
	Line     int64
	Function string
}

// UnmarshalJSON decodes the line from the list that the agent writes.
func (l *LineInfo) UnmarshalJSON(b []byte) error {
	return decodeList(b, "a line", &l.ID, &l.File, &l.Line, &l.Function)
}

// HoldersInfo is the result of one search for the holders of blocks that are not parameters, buffers, gradients or
// optimizer state.
type HoldersInfo struct {
	K        uint32               `json:"k"`
	Moment   schemas.HolderMoment `json:"moment"`
	Complete bool                 `json:"complete"` // the look covered all living tensors and all graphs
	Blocks   []HolderInfo         `json:"blocks"`   // blocks whose holder changed since an earlier look
}

// HolderInfo says what keeps one block.
type HolderInfo struct {
	Address uint64
	Bytes   int64
	View    int64 // how many of the block's bytes the kept tensors show; 0 = all
	Kind    schemas.HolderKind
	Path    string // path from a name to the block, with secrets masked; empty = only C++ keeps it
}

// UnmarshalJSON decodes the holder from the list that the agent writes.
func (h *HolderInfo) UnmarshalJSON(b []byte) error {
	return decodeList(b, "a holder", &h.Address, &h.Bytes, &h.View, &h.Kind, &h.Path)
}

// decodeList decodes a JSON list into fields. The list must have as many values as there are fields.
func decodeList(b []byte, what string, fields ...any) error {
	n := len(fields)
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	if len(fields) != n {
		return fmt.Errorf("%s has %d fields, not %d", what, len(fields), n)
	}
	return nil
}

// PlanInfo is the numbers of warm-up and timed steps that the script announced with dpsight.plan.
type PlanInfo struct {
	Warmup int64 `json:"warmup"`
	Timed  int64 `json:"timed"`
}

// EndInfo is the payload of the last frame, which the agent writes at the process's end.
type EndInfo struct {
	Reason  string `json:"reason"` // how the process ended: exit, exception
	Marks   int64  `json:"marks"`
	Drains  int64  `json:"drains"`
	DrainNS int64  `json:"drain_ns"`
	Steps   int64  `json:"steps"`
}

// A Chunk is one drain: the allocator's events since the previous drain (a pickle of torch's snapshot; nil if none were
// recorded) and torch's counters.
type Chunk struct {
	Pickle     []byte      // a part of the journal's bytes, not a copy
	Offset     int64       // offset of the drain's frame
	Checkpoint *Checkpoint // nil if the process died between the two frames
}

// A Journal is everything that one process recorded.
type Journal struct {
	Path        string // file from which the journal was read; for a live journal the marks file
	Rank        int32
	Header      MarksHeader
	Process     *ProcessInfo // nil if the process died before its first frame
	Environment *schemas.Environment
	Code        []schemas.CodeFile // absent from journals of older agents
	Privacy     *schemas.Privacy
	Names       map[uint32]string
	Modules     []ModuleInfo
	Marks       []Mark
	Tags        []Tag // in the order in which the agent wrote them
	Chunks      []Chunk
	Intervals   []Interval
	Host        []HostReading // absent from journals of older agents
	Config      map[string]any
	Metrics     []MetricInfo
	OOMs        []OOMInfo
	Exception   *ExceptionInfo
	Failures    []FailureInfo // failures of the agent
	Plan        *PlanInfo
	Lines       *LinesInfo      // nil in older journals, and if no lines are followed
	Holders     []HoldersInfo   // in order of K; absent from journals of older agents
	Devices     []DeviceInfo    // absent from journals of older agents
	Prediction  *PredictionInfo // nil on a real GPU, and in journals of older agents
	End         *EndInfo
	Frames      int64
	Torn        *TornError // where the intact frames end; nil = the frames end cleanly
	Damaged     []error    // errors of whole frames whose payload could not be read; each is skipped
}

// Parse reads a journal from the bytes of its two files. Parse records damage inside a frame in Damaged, and a torn
// tail in Torn. Parse returns an error only if the bytes are no journal at all.
func Parse(marks, frames []byte) (*Journal, error) {
	j := &Journal{Names: map[uint32]string{}}
	var err error
	if j.Header, j.Marks, err = ScanMarks(marks); err != nil {
		var torn *TornError
		if !errors.As(err, &torn) {
			return nil, err
		}
		j.Torn = torn
	}
	fs, err := ScanFrames(frames)
	if err != nil {
		var torn *TornError
		if !errors.As(err, &torn) {
			return nil, err
		}
		j.Torn = torn
	}
	j.Frames = int64(len(fs))
	for _, f := range fs {
		if err := j.add(f); err != nil {
			j.Damaged = append(j.Damaged, fmt.Errorf("frame of type %d at byte %d: %w", f.Type, f.Offset, err))
		}
	}
	j.addWriteError(marks)
	return j, nil
}

// addWriteError adds a failure to the journal of an agent that could no longer write, unless the agent has written the
// failure itself.
func (j *Journal) addWriteError(marks []byte) {
	number := writeError(marks)
	if number == 0 || slices.ContainsFunc(j.Failures, func(f FailureInfo) bool { return f.Fatal }) {
		return
	}
	failure := FailureInfo{Hook: "writing the journal", Error: errnoText(number), Fatal: true}
	if n := len(j.Marks); n > 0 {
		failure.TimeNS = j.Marks[n-1].TimeNS
	}
	j.Failures = append(j.Failures, failure)
}

// errnoText returns Linux's text for an error number, even if this program runs on another system.
func errnoText(number uint32) string {
	switch number {
	case 5:
		return "input/output error"
	case 27:
		return "file too large"
	case 28:
		return "no space left on device"
	case 122:
		return "disk quota exceeded"
	}
	return fmt.Sprintf("error %d", number)
}

func (j *Journal) add(f Frame) (err error) {
	switch f.Type {
	case FrameProcess:
		j.Process, err = decode[ProcessInfo](f.Payload)
	case FrameEnvironment:
		j.Environment, err = decode[schemas.Environment](f.Payload)
	case FrameCode:
		var v *struct{ Files []schemas.CodeFile }
		if v, err = decode[struct{ Files []schemas.CodeFile }](f.Payload); err == nil {
			j.Code = v.Files
		}
	case FramePrivacy:
		j.Privacy, err = decode[schemas.Privacy](f.Payload)
	case FrameFailure:
		var v *FailureInfo
		if v, err = decode[FailureInfo](f.Payload); err == nil {
			j.Failures = append(j.Failures, *v)
		}
	case FrameException:
		j.Exception, err = decode[ExceptionInfo](f.Payload)
	case FrameLines:
		var l *LinesInfo
		if l, err = decode[LinesInfo](f.Payload); err == nil {
			if j.Lines != nil {
				l.Lines = append(j.Lines.Lines, l.Lines...)
			}
			j.Lines = l
		}
	case FrameHolders:
		var h *HoldersInfo
		if h, err = decode[HoldersInfo](f.Payload); err == nil {
			j.Holders = append(j.Holders, *h)
		}
	case FrameEnd:
		j.End, err = decode[EndInfo](f.Payload)
	case FramePlan:
		j.Plan, err = decode[PlanInfo](f.Payload)
	case FrameDevices:
		var v *struct{ Devices []DeviceInfo }
		if v, err = decode[struct{ Devices []DeviceInfo }](f.Payload); err == nil {
			j.Devices = append(j.Devices, v.Devices...)
		}
	case FramePrediction:
		j.Prediction, err = decode[PredictionInfo](f.Payload)
	case FrameNames:
		err = j.addNames(f.Payload)
	case FrameModules:
		var v *struct{ Modules []ModuleInfo }
		if v, err = decode[struct{ Modules []ModuleInfo }](f.Payload); err == nil {
			if len(v.Modules) > 0 {
				v.Modules[0].First = true
			}
			j.Modules = append(j.Modules, v.Modules...)
		}
	case FrameTags:
		j.Tags, err = parseTags(f.Payload, j.Tags)
	case FrameTimes:
		j.Intervals, err = parseIntervals(f.Payload, j.Intervals)
	case FrameHost:
		j.Host, err = parseHostReadings(f.Payload, j.Host)
	case FrameAllocator:
		j.Chunks = append(j.Chunks, Chunk{Pickle: f.Payload, Offset: f.Offset})
	case FrameCheckpoint:
		var c *Checkpoint
		if c, err = decode[Checkpoint](f.Payload); err != nil {
			return err
		}
		if n := len(j.Chunks); n > 0 && j.Chunks[n-1].Checkpoint == nil {
			j.Chunks[n-1].Checkpoint = c
		} else {
			j.Chunks = append(j.Chunks, Chunk{Offset: f.Offset, Checkpoint: c})
		}
	case FrameConfig:
		var v map[string]any
		if err = json.Unmarshal(f.Payload, &v); err == nil {
			if j.Config == nil {
				j.Config = map[string]any{}
			}
			for k, x := range v {
				j.Config[k] = x
			}
		}
	case FrameMetric:
		var m *MetricInfo
		if m, err = decode[MetricInfo](f.Payload); err == nil {
			j.Metrics = append(j.Metrics, *m)
		}
	case FrameOOM:
		var o *OOMInfo
		if o, err = decode[OOMInfo](f.Payload); err == nil {
			j.OOMs = append(j.OOMs, *o)
		}
	}
	return err
}

func (j *Journal) addNames(b []byte) error { return Names(b, j.Names) }

// Names adds the ids and names in the payload of a [FrameNames] to known.
func Names(b []byte, known map[uint32]string) error {
	v, err := decode[struct {
		Names [][2]json.RawMessage `json:"names"`
	}](b)
	if err != nil {
		return err
	}
	for _, p := range v.Names {
		var id uint32
		var s string
		if err := errors.Join(json.Unmarshal(p[0], &id), json.Unmarshal(p[1], &s)); err != nil {
			return err
		}
		known[id] = s
	}
	return nil
}

func decode[T any](b []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, err
	}
	return v, nil
}
