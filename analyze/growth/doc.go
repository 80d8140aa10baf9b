// Package growth finds memory that grows from step to step, or from pass to pass of a loop that trains nothing, and
// says when it will run out.
//
// What is looked at is the lowest allocated of each step: what the step before left behind. The highest follows the
// batch. A growth is steady: it is spread over the whole series and goes on at its end, so that a cache that is filled
// once, a state that an optimizer makes late, plateaus, a sawtooth, and a growth that has ended are none.
package growth
