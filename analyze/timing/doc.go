// Package timing computes the times of a run's steps, phases and modules, the energy of its steps, and in how many
// steps the GPU was throttled. Times are medians over bare steps after warm-up, with an interval around the median.
package timing
