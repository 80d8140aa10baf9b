// Package live shows runs while they are recorded: a server for the page, and what is read of a journal that grows. It
// reads files alone: the recorded process and its collector do not know of it.
package live
