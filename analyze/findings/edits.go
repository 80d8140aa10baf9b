package findings

import (
	"regexp"
	"slices"

	"github.com/dpsight/dpsight/analyze/source"
	"github.com/dpsight/dpsight/schemas"
)

// edits returns the lines of the script to change for a finding, if the source is available. edits returns the lines
// that assign the variable that holds the bytes, if it is known, or else the lines that request the bytes. If the line
// that requested most of the blocks is among the lines to change, edits returns only that line.
func (x *evidence) edits(f *Finding) []schemas.Line {
	out := x.candidates(f)
	own := slices.IndexFunc(out, func(l schemas.Line) bool {
		return f.Line != nil && l.File == f.Line.Line.File && l.Number == f.Line.Line.Number
	})
	if own >= 0 {
		return out[own : own+1]
	}
	return out
}

func (x *evidence) candidates(f *Finding) []schemas.Line {
	files := source.Files(x.in.Sources)
	if keeps[f.ID] {
		if out := files.Bindings(f.Holder); len(out) > 0 {
			return out
		}
	}
	if f.Caught != nil {
		return []schemas.Line{*f.Caught}
	}
	if asks := askedBy[f.ID]; asks != nil {
		return files.Lines(asks)
	}
	return nil
}

// keeps lists the findings about memory that a name in the script keeps.
var keeps = map[string]bool{Growth: true, EvaluationGraphs: true, KeptGraphs: true, GradientGraphs: true,
	ViewKeepsBase: true, KeptException: true, EarlierGraph: true, RetainedGraph: true, PreviousValue: true,
	ScriptTensors: true}

// askedBy maps a finding to a pattern of the calls in a script that cause it.
var askedBy = map[string]*regexp.Regexp{
	AutocastCache:      regexp.MustCompile(`\bautocast\(`),
	BucketCopies:       regexp.MustCompile(`\b(DistributedDataParallel|DDP)\(`),
	GradientGraphs:     regexp.MustCompile(`\bcreate_graph=True`),
	RetainedGraph:      regexp.MustCompile(`\bcreate_graph=True|\bfunc\.grad\w*\(`),
	KeptGradients:      regexp.MustCompile(`\.zero_grad\(`),
	WholeCheckpoint:    regexp.MustCompile(`\bcheckpoint\(`),
	OptimizerPeak:      optimizers,
	UntrainedGradients: optimizers,
	AdapterDropout:     regexp.MustCompile(`\blora_dropout\s*=`),
	ThreadWorkspaces:   regexp.MustCompile(`\.backward\(`),
	PerSample:          private,
	PerSampleEmbedding: private,
	ClipTemporaries:    private,
	OwnHooks:           private,
}

var (
	optimizers = regexp.MustCompile(`\boptim\.[A-Z]\w*\(|\b(Adam\w*|SGD|RMSprop|Adagrad|NAdam|RAdam)\(`)
	private    = regexp.MustCompile(`\bmake_private\w*\(|\bGradSampleModule\w*\(`)
)
