// Package compare sets runs beside each other. Repeats of one experiment are a [Cell]: its breakdown is that of the run
// with the median peak, its times are medians of the runs' medians. A [Study] compares each cell with the baseline of
// its own parameters, and says where the two differ in a condition that a fair comparison holds constant.
package compare
