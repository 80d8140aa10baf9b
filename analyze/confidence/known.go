package confidence

import (
	_ "embed" // the table of known errors
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/dpsight/dpsight/schemas"
)

// KnownErrorsSchema is the version of [KnownErrorsDocument].
const KnownErrorsSchema = "dpsight.known-errors/1"

// KnownErrorsDocument is what "dpsight accuracy --by-doubt --format json" prints: how far off predictions
// called [schemas.Close] were, by kind of doubt.
type KnownErrorsDocument struct {
	Schema string        `json:"schema"`
	Doubts []KnownErrors `json:"doubts"` // doubts that have cases, in the order of [schemas.Doubts]
	// Unended lists measured experiments whose predictions did not end well. No error includes them.
	Unended []AccuracyUnended `json:"unended"`
}

// KnownErrors are the errors of the predictions with one kind of doubt. A prediction with several kinds of doubt
// counts for each. [schemas.DoubtReads] is an exception: nearly every script reads its loss, so its cases are the
// predictions without any other doubt.
type KnownErrors struct {
	Doubt     string         `json:"doubt"`
	Allocated AccuracyErrors `json:"allocated"`
	Reserved  AccuracyErrors `json:"reserved"`
}

// Decisive leaves out the reasons that nearly every script has, if there are others.
func Decisive(kinds []string) []string {
	if len(kinds) < 2 {
		return kinds
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == schemas.DoubtReads })
}

// Doubts returns the kinds of doubt about a predicted peak. Doubts returns nil if there are none, or if the run does
// not say.
func Doubts(m *schemas.Manifest, r *schemas.IngestReport) []string {
	if m.Source != schemas.Predicted || r == nil || r.Prediction == nil || m.Phantom == nil {
		return nil
	}
	f, p := m.Phantom, r.Prediction
	found := map[string]bool{
		schemas.DoubtReads: len(UnknownReads(p)) > 0, schemas.DoubtFinite: len(p.Assumptions) > 0,
		schemas.DoubtSizes: len(p.Guesses) > 0, schemas.DoubtCompile: p.Compiled,
		schemas.DoubtRanks: len(p.CopiedReads) > 0,
		schemas.DoubtOther: p.Ended != nil || drawnAnew(m) || caughtOOM(r) || absorbedOOM(r) || !f.Checked ||
			m.Environment == nil || !sameRelease(m.Environment.Torch, f.CheckedTorch) || f.Addresses != f.DefaultAddresses ||
			p.Band != nil && p.Band.Allocated[0] != p.Band.Allocated[1] ||
			slices.ContainsFunc(f.Placements, func(x schemas.Placement) bool {
				return x.Status != m.Status
			})}
	for _, n := range p.Notes {
		found[doubtOf(n)] = true
	}
	return slices.DeleteFunc(slices.Clone(schemas.Doubts), func(kind string) bool { return !found[kind] })
}

// noteKinds maps parts of the phantom GPU's notes to kinds of doubt.
var noteKinds = []struct{ part, kind string }{{"cuDNN", schemas.DoubtCuDNN}, {"NCCL", schemas.DoubtRanks},
	{schemas.OldNoteFinite, schemas.DoubtFinite},
	{schemas.NoteKernelRead, schemas.DoubtReads}, {schemas.NoteCopyLimit, schemas.DoubtReads}}

func doubtOf(note string) string {
	for _, n := range noteKinds {
		if strings.Contains(note, n.part) {
			return n.kind
		}
	}
	return schemas.DoubtOther
}

// knownJSON is what a command of docs/accuracy.md prints of the recordings in examples. A test compares the file with
// the recordings.
//
//go:embed known.json
var knownJSON []byte

var knownByKind = sync.OnceValue(func() map[string]*KnownErrors {
	var doc KnownErrorsDocument
	if err := json.Unmarshal(knownJSON, &doc); err != nil {
		panic("analyze/confidence/known.json: " + err.Error())
	}
	byKind := map[string]*KnownErrors{}
	for i := range doc.Doubts {
		byKind[doc.Doubts[i].Doubt] = &doc.Doubts[i]
	}
	return byKind
})

// knownErrors returns the errors of the recorded cases with these doubts. knownErrors returns nil if one of the kinds
// has no recording.
func knownErrors(kinds []string) (known []KnownErrors) {
	for _, kind := range Decisive(kinds) {
		k := knownByKind()[kind]
		if k == nil {
			return nil
		}
		known = append(known, *k)
	}
	return known
}

// AccuracyUnended is an experiment whose prediction did not end well.
type AccuracyUnended struct {
	Name   string `json:"name"`
	Status string `json:"status"` // status of the prediction
}

// AccuracyErrors are the errors of one figure over all experiments, without their signs.
type AccuracyErrors struct {
	Of     int      `json:"of"`    // number of experiments with a prediction and a recording
	Exact  int      `json:"exact"` // number of predictions that are exact to the byte
	Median *float64 `json:"median"`
	Worst  *float64 `json:"worst"`
	Where  string   `json:"where,omitempty"` // the experiment with the worst prediction
}
