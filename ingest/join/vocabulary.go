package join

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// RulesVersion must change with each change to the rules of this package, of package steps or of package stackrules.
// dpsight does not compare categories of different versions. docs/categories.md says what each version changed.
const RulesVersion = 13

// tagCategories maps a tag's kind to the category of the tagged block.
var tagCategories = map[spool.TagKind]schemas.Category{
	spool.TagParameter: schemas.Parameters, spool.TagBuffer: schemas.Buffers, spool.TagGradient: schemas.Gradients,
	spool.TagOptimizerState: schemas.OptimizerState, spool.TagSavedTensor: schemas.Activations,
	spool.TagHookActivation: schemas.HookActivations, spool.TagGradSample: schemas.PerSampleGradients,
	spool.TagNormSample: schemas.NormSamples, spool.TagSummedGradient: schemas.SummedGradients,
	spool.TagNoise:          schemas.Noise,
	spool.TagStoredBackprop: schemas.StoredBackprops, spool.TagInput: schemas.Inputs, spool.TagOutput: schemas.Outputs,
	spool.TagClipTemporary: schemas.ClipTemporaries, spool.TagHeld: schemas.Script,
}

// beginning says from which moment on a tagged block belongs to its category.
type beginning uint8

const (
	fromBirth   beginning = iota
	fromTag               // the block had another category before the tag
	fromDPBirth           // the category holds from birth if the block was born in DP code, else from the tag
)

var beginnings = map[schemas.Category]beginning{
	schemas.Gradients: fromTag, schemas.StoredBackprops: fromTag,
	schemas.SummedGradients: fromDPBirth, schemas.Noise: fromDPBirth, schemas.PerSampleGradients: fromDPBirth,
	schemas.NormSamples: fromDPBirth, schemas.ClipTemporaries: fromDPBirth,
}

// categoryIndex is the index of a category in [schemas.Categories].
type categoryIndex = uint8

var (
	parameters           = index(schemas.Parameters)
	optimizerState       = index(schemas.OptimizerState)
	gradients            = index(schemas.Gradients)
	perSampleGradients   = index(schemas.PerSampleGradients)
	activations          = index(schemas.Activations)
	hookActivations      = index(schemas.HookActivations)
	clipTemporaries      = index(schemas.ClipTemporaries)
	inputs               = index(schemas.Inputs)
	outputs              = index(schemas.Outputs)
	autocastCache        = index(schemas.AutocastCache)
	workspace            = index(schemas.Workspace)
	activationGradients  = index(schemas.ActivationGradients)
	forwardTemporaries   = index(schemas.ForwardTemporaries)
	optimizerTemporaries = index(schemas.OptimizerTemporaries)
	script               = index(schemas.Script)
	untraced             = index(schemas.Untraced)
	other                = index(schemas.Other)
)

func index(c schemas.Category) categoryIndex {
	if p := schemas.Precedence(c); p < len(schemas.Categories) {
		return categoryIndex(p)
	}
	return categoryIndex(schemas.Precedence(schemas.Other))
}

var (
	tagIndex   [256]categoryIndex // index of the category for each kind of tag, which is a byte
	beginIndex = make([]beginning, len(schemas.Categories))
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

// RulesHash returns a hash of the tables that the rules use.
func RulesHash() string {
	var b strings.Builder
	// fmt prints maps sorted by key.
	fmt.Fprintln(&b, RulesVersion, tagCategories, beginnings, workspaceSizes, perCallSizes, schemas.Categories, roles,
		lossNodes)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}
