// Package confidence judges how sure a prediction is, from the manifest and what the phantom GPU said alone, and how
// far off recorded predictions with the same doubts were.
package confidence
