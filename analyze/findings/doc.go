// Package findings looks for what is worth saying of a run. Each check stands in a file of its own with its threshold
// and the facts that it gives; package report puts them into words. docs/findings.md describes them.
package findings
