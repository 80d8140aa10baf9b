// Package gate checks runs against a baseline that was written before. The check fails if a metric grew by more than
// its threshold.
package gate
