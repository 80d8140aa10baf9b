package join

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// RulesVersion changes with every change to the rules of this package or of the steps package.
const RulesVersion = 10

// tagCategories says what a tagged block is.
var tagCategories = map[spool.TagKind]schemas.Category{
	spool.TagParameter: schemas.Parameters, spool.TagBuffer: schemas.Buffers, spool.TagGradient: schemas.Gradients,
	spool.TagOptimizerState: schemas.OptimizerState, spool.TagSavedTensor: schemas.Activations,
	spool.TagHookActivation: schemas.HookActivations, spool.TagGradSample: schemas.PerSampleGradients,
	spool.TagNormSample: schemas.NormSamples, spool.TagSummedGradient: schemas.SummedGradients,
	spool.TagNoise:          schemas.Noise,
	spool.TagStoredBackprop: schemas.StoredBackprops, spool.TagInput: schemas.Inputs, spool.TagOutput: schemas.Outputs,
	spool.TagClipTemporary: schemas.ClipTemporaries, spool.TagHeld: schemas.Other,
}

// beginning says from where on a tagged block belongs to its category.
type beginning uint8

const (
	fromBirth   beginning = iota
	fromTag               // it was something else before
	fromDPBirth           // from birth if it was born in DP code, else from the tag
)

var beginnings = map[schemas.Category]beginning{
	schemas.Gradients: fromTag, schemas.StoredBackprops: fromTag,
	schemas.SummedGradients: fromDPBirth, schemas.Noise: fromDPBirth, schemas.PerSampleGradients: fromDPBirth,
	schemas.NormSamples: fromDPBirth, schemas.ClipTemporaries: fromDPBirth,
}

// workspaceSizes are the sizes that torch gives the workspaces of cuBLAS and cuBLASLt, in bytes: Hopper and later
// (32 MiB), earlier GPUs (8.125 MiB), cuBLASLt's (1 MiB), and what the first library adds of its own (8 KiB).
// CUBLAS_WORKSPACE_CONFIG adds others: see [Workspaces].
var workspaceSizes = []int64{32 << 20, 32<<20 + 8<<10, 8<<20 + 128<<10, 8<<20 + 136<<10, 4 << 20, 1 << 20}

// perCallSizes are the workspaces that newer releases of torch take for one call and give back at once.
var perCallSizes = []int64{32 << 20, 8<<20 + 128<<10}

// categoryIndex turns a category into its place in [schemas.Categories].
type categoryIndex = uint8

var other = index(schemas.Other)

func index(c schemas.Category) categoryIndex {
	if p := schemas.Precedence(c); p < len(schemas.Categories) {
		return categoryIndex(p)
	}
	return categoryIndex(schemas.Precedence(schemas.Other))
}

var (
	tagIndex   [256]categoryIndex
	beginIndex [32]beginning
)

func init() {
	for i := range tagIndex {
		tagIndex[i] = other
	}
	for k, c := range tagCategories {
		tagIndex[k] = index(c)
	}
	for c, b := range beginnings {
		beginIndex[index(c)] = b
	}
}

// RulesHash is a hash of the tables that the rules go by.
func RulesHash() string {
	var b strings.Builder
	// fmt sorts maps by key
	fmt.Fprintln(&b, RulesVersion, tagCategories, beginnings, workspaceSizes, perCallSizes, schemas.Categories, roles,
		lossNodes)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}

// Workspaces reads CUBLAS_WORKSPACE_CONFIG (":4096:2:16:8": pairs of KiB and count) into the size of the workspace; 0 =
// it names none.
func Workspaces(config string) int64 {
	var total int64
	fields := strings.Split(strings.TrimPrefix(config, ":"), ":")
	for i := 0; i+1 < len(fields); i += 2 {
		var kib, n int64
		if _, err := fmt.Sscan(fields[i], &kib); err != nil || kib < 0 || kib > 1<<30 {
			return 0
		}
		if _, err := fmt.Sscan(fields[i+1], &n); err != nil || n < 0 || n > 1<<16 {
			return 0
		}
		total += kib * n << 10
	}
	return total
}
