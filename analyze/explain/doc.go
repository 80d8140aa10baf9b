// Package explain accounts for the difference between two runs. Package explain divides the bytes and the milliseconds
// by category, module, phase and line of the script, so that the parts sum to the difference.
package explain
