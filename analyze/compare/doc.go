// Package compare compares runs. The repeats of one experiment form a [Cell]: the cell's breakdown comes from the run
// with the median peak, and its times are medians of the runs' medians. A [Study] compares each cell with the baseline
// of the same parameters. A study also lists the conditions that differ between a cell and its baseline although a fair
// comparison holds them constant.
package compare
