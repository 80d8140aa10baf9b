// Package ranks compares the devices of one run: their peaks, the device whose peak differs most from the others, and
// the categories, modules and lines in which it differs.
//
// A peak lies apart if it differs from the median of the other peaks by [BoundPercent] of that median or more. The
// package compares the device with a single other device, whose peak is nearest to the median. So the differences of
// all parts sum to the difference of the two devices, to the byte. Differences from the median of each part would not.
package ranks
