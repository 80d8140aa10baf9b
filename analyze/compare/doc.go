// Package compare sets runs beside each other. Repeats of one experiment are a [Cell]: its breakdown comes from the
// run with the median peak, and its times are medians of the runs' medians. A [Study] compares each cell with the
// baseline of the same parameters. A study also says where a cell and its baseline differ in a condition that a fair
// comparison holds constant.
package compare
