package figure

import (
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// palette gives every category one colour, in every figure. One hue a family (blue: the model's state; orange:
// gradients; green: held for backward; the rest apart), and lightness alternates along the order of stacking, so that
// neighbours differ for colour-blind readers and in grey print too.
var palette = map[schemas.Category]canvas.Color{
	schemas.Parameters:           0x204d8b,
	schemas.Buffers:              0xc6dbef,
	schemas.OptimizerState:       0x5b9bd5,
	schemas.SummedGradients:      0x8c2d04,
	schemas.Noise:                0xffe6d2,
	schemas.Gradients:            0xe16114,
	schemas.PerSampleGradients:   0xf6b277,
	schemas.NormSamples:          0x54270f,
	schemas.Activations:          0x58b793,
	schemas.HookActivations:      0xe2f5c1,
	schemas.StoredBackprops:      0x01645f,
	schemas.ClipTemporaries:      0xd98cb3,
	schemas.Outputs:              0xf7e463,
	schemas.Inputs:               0x836700,
	schemas.Workspace:            0xc9b7e4,
	schemas.ActivationGradients:  0x7346a5,
	schemas.ForwardTemporaries:   0xf9bbad,
	schemas.OptimizerTemporaries: 0x7a1f3d,
	schemas.Slack:                0xd1d1d1,
	schemas.Untraced:             0x494949,
	schemas.Other:                0x959595,
}

const (
	minorColor   canvas.Color = 0xe4e4e4 // categories grouped because they are small
	unknownColor canvas.Color = 0xf0f0f0 // a peak without a breakdown
	ink          canvas.Color = 0x1a1a1a
	softInk      canvas.Color = 0x5c5c5c
	gridColor    canvas.Color = 0xe2e2e2
	paper        canvas.Color = 0xffffff
)

// inkOn is the colour of text on a fill.
func inkOn(fill canvas.Color) canvas.Color {
	if fill.Luminance() > 0.3 {
		return ink
	}
	return paper
}

// words is a category as a reader says it.
func words(c schemas.Category) string { return strings.ReplaceAll(c, "_", " ") }
