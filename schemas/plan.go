package schemas

// PlanSchema is the version of [Plan].
const PlanSchema = "dpsight.plan/1"

// Plan is what "dpsight collect --suite … --dry-run --format json" prints: a suite's experiments, and how many of
// their runs have been made.
type Plan struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	// SuiteID is the id of the suite in the store whose runs Done counts; null if the store has no suite of that name.
	SuiteID     *string          `json:"suite_id"`
	Baseline    map[string]any   `json:"baseline"`
	TimeoutS    float64          `json:"timeout_s"`  // time limit of a run; 0 = none
	CooldownS   float64          `json:"cooldown_s"` // pause before each run
	Varies      []string         `json:"varies"`     // the parameters that are not the same in all experiments
	LeftOut     int              `json:"left_out"`   // number of experiments that exclude and where leave out
	Runs        int              `json:"runs"`       // number of runs of all experiments
	Done        int              `json:"done"`       // number of runs in the store that ended by themselves
	Todo        int              `json:"todo"`       // number of runs that this command would make
	Experiments []PlanExperiment `json:"experiments"`
}

// PlanExperiment is one experiment of a plan.
type PlanExperiment struct {
	Name    string         `json:"name"`
	Params  map[string]any `json:"params"`
	Bare    bool           `json:"bare"`
	Command []string       `json:"command,omitempty"`
	Repeats int            `json:"repeats"` // number of runs that are wanted
	Key     string         `json:"key"`
	Done    int            `json:"done"`   // number of runs in the store that ended by themselves
	Failed  int            `json:"failed"` // number of the runs in Done that failed
	Todo    int            `json:"todo"`   // number of runs that this command would make
	// Again has, for each run of Todo that was made before, how the earlier run ended: badly, or not at all.
	Again []string `json:"again"`
}
