// Package trend follows each experiment over the revisions or the days of its runs, and finds where its figure
// moves to another level. Bytes are exact: they step if they change by more than repeats of one revision differ.
// Times step if a rank test finds a difference.
package trend
