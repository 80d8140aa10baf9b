// Package blocks lists the blocks of a run one by one, in columns, with the category of each from event to event. A
// page can draw all of them and sum them on demand.
package blocks
