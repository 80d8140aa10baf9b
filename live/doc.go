// Package live shows runs while they are recorded. Package live has a server for the page, and a reader for growing
// journals. The package only reads files, so the recorded process and its collector do not wait for it.
package live
