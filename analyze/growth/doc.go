// Package growth finds memory that grows from step to step, or from pass to pass of a loop that trains nothing, and
// predicts when it will run out.
//
// The package uses the lowest allocated of each step, which is what the step before has left behind. A step's highest
// allocated depends on the batch. A growth is steady: it is spread over the whole series and continues at its end. So a
// cache that is filled once, late optimizer state, plateaus, a sawtooth, and a growth that has ended do not count.
package growth
