// Package watch shows runs that are being recorded on a terminal: what the page's Live view says, in text.
package watch
