// Package trend follows each experiment over the revisions or the days of its runs, and finds where the chosen value
// jumps to another level. Bytes have a jump where they change by more than repeats of one revision differ. Times have a
// jump where a rank test finds a difference between the runs before and after.
package trend
