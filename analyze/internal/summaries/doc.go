// Package summaries makes the summaries of small runs, for tests.
package summaries
