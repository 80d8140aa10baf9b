// Package timing gives the times of a run: of steps, phases and modules, with the energy that they took and how much of
// them the GPU was throttled. Times are medians over bare steps after warm-up, with an interval around them.
package timing
