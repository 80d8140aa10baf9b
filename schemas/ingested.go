package schemas

import "slices"

// IngestedSchema is the version of [Ingested].
const IngestedSchema = "dpsight.ingest/1"

// Ingested is what "dpsight ingest --format json" prints: whether each input was ingested, already known or refused.
type Ingested struct {
	Schema string          `json:"schema"`
	Inputs []IngestedInput `json:"inputs"`
	// OtherRules lists the runs that were left alone although another version of the rules made their tables.
	OtherRules []string `json:"other_rules,omitempty"`
	// Remade lists runs that were ingested again if another version of the rules had made their tables, or if their
	// bytes at the peak changed.
	Remade []Remade `json:"remade,omitempty"`
	Dirs   []string `json:"-"` // folders of runs that have tables, made now or earlier
}

// Remade is a run whose tables were made again.
type Remade struct {
	RunID       string  `json:"run_id"`
	Name        string  `json:"name"`
	RulesBefore int     `json:"rules_before"` // version of the attribution rules before; 0 = unknown
	Rules       int     `json:"rules"`        // version of the attribution rules now
	Moved       []Moved `json:"moved"`        // changed figures; devices without a change are not listed
}

// Moved is one figure of a device's peak, the total or a category, before and after a run's tables were made again.
type Moved struct {
	Rank        int32     `json:"rank"`         // the process's RANK, from 0
	Device      string    `json:"device"`       // "cuda:0"
	Category    *Category `json:"category"`     // null = the total of the peak
	BeforeBytes int64     `json:"before_bytes"` // bytes
	AfterBytes  int64     `json:"after_bytes"`  // bytes
}

// The values of [IngestedInput.State].
const (
	IngestNew     = "new"
	IngestKnown   = "known"   // the input was ingested earlier and was left alone
	IngestRefused = "refused" // nothing was written for the input
)

// IngestedInput is the result for one input, a snapshot or a run folder.
type IngestedInput struct {
	Path   string   `json:"path"`
	RunIDs []string `json:"run_ids"`
	State  string   `json:"state"`  // [IngestNew], [IngestKnown] or [IngestRefused]
	Again  bool     `json:"again"`  // the run had tables before, and has new ones
	Reason *string  `json:"reason"` // why the input was refused, else null
	Hint   string   `json:"-"`      // what to do about the refusal, if known
	// Warnings are the warnings of the ingest report about an imported snapshot, on how reliable its figures are.
	Warnings []string `json:"warnings,omitempty"`
}

// AddDir adds a run's folder unless it is already listed: snapshots of several ranks share one run.
func (d *Ingested) AddDir(dir string) {
	if !slices.Contains(d.Dirs, dir) {
		d.Dirs = append(d.Dirs, dir)
	}
}

// Refused returns the inputs that were refused.
func (d *Ingested) Refused() []IngestedInput {
	var out []IngestedInput
	for _, in := range d.Inputs {
		if in.State == IngestRefused {
			out = append(out, in)
		}
	}
	return out
}
