package schemas

// Module is one row of modules.parquet: one torch module of the experiment.
type Module struct {
	RunID          string `parquet:"run_id,dict"`     // the run's id, as in run.json
	Rank           int32  `parquet:"rank,dict"`       // the process's RANK, from 0
	ID             int64  `parquet:"module_id,delta"` // from 1; the agent's number
	Path           string `parquet:"path"`            // dotted path from the root; "" = a root
	Class          string `parquet:"class,dict"`      // of Python: "Linear"
	Role           string `parquet:"role,dict"`       // attention, mlp, embedding, norm, lora, head, other
	ParameterBytes int64  `parquet:"parameter_bytes"` // of the module itself, children excluded
	// how the DP method takes its norm: ghost, per_sample, grouped, tiled_gram, tiled_outer
	NormBy string `parquet:"norm_by,dict,optional"`
}

// Modules is modules.parquet.
var Modules = Table[Module]{Name: "modules", Version: 1}
