// Package trend follows each experiment over the revisions or the days of its runs, and finds where its figure steps to
// another level. Bytes are exact: they step where they change by more than repeats of one revision do. Times step where
// a rank test says so.
package trend
