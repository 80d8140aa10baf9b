// Package explain accounts for the difference between two runs: which categories, modules, phases and lines of the
// script the bytes and the milliseconds are of, so that the parts sum to the difference.
package explain
