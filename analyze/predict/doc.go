// Package predict evaluates predicted runs: whether a script fits into a device's memory, how far a parameter can grow,
// and how predictions compare with measurements.
package predict
