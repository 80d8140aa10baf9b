// Package live shows runs while they are recorded. It has a server for the page, and a reader for journals that
// grow. It only reads files: the recorded process and its collector do not notice it.
package live
