// Package ranks compares the devices of one run: their peaks side by side, the one that differs from the others,
// and what it holds more or less of.
//
// A peak lies apart if it differs from the median of the others by [BoundPercent] of that median or more. What such a
// device holds more of is shown in comparison with one other device, whose peak is nearest to the median. So the
// differences of all parts sum to the difference of the two devices, to the byte. Differences to the median of each
// part would not.
package ranks
