// Package live shows runs while they are recorded. Package live has a server for the page, and a reader for journals
// that grow. The package only reads files: the recorded process and its collector do not notice it.
package live
