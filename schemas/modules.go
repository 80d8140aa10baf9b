package schemas

// Module is one row of modules.parquet: one torch module of the experiment.
type Module struct {
	RunID          string `parquet:"run_id,dict"`     // the run's id, as in run.json
	Rank           int32  `parquet:"rank,dict"`       // the process's RANK, from 0
	ID             int64  `parquet:"module_id,delta"` // the agent's number of the module, from 1
	Path           string `parquet:"path"`            // dotted path from the root; "" = a root
	Class          string `parquet:"class,dict"`      // the module's Python class: "Linear"
	Role           string `parquet:"role,dict"`       // one of attention, mlp, embedding, norm, lora, head, other
	ParameterBytes int64  `parquet:"parameter_bytes"` // bytes of the module's own parameters, without its children's
	// how the DP method computes the norm of the module's gradients: ghost, per_sample, grouped, tiled_gram, tiled_outer
	NormBy string `parquet:"norm_by,dict,optional"`
}

// Modules is modules.parquet.
var Modules = Table[Module]{Name: "modules", Version: 1}
