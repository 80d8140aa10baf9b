// Package blocks lists the blocks of a run one by one, with what each is counted under from when to when, in columns:
// for a page that draws all of them and sums them as a reader asks.
package blocks
