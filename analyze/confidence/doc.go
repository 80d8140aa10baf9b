// Package confidence judges how certain a prediction is, using only the manifest and the phantom GPU's report, and says
// how far off predictions with the same doubts were where a recording exists.
package confidence
