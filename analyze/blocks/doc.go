// Package blocks lists the blocks of a run one by one, in columns, with the category of each from event to event. A
// page can draw all blocks and sum their bytes on demand.
package blocks
