// Package confidence judges how certain a prediction is, using only the manifest and the phantom GPU's report, and
// says how far off recorded predictions with the same doubts were.
package confidence
