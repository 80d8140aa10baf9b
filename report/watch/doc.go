// Package watch shows runs on a terminal while they are being recorded: the page's Live view, as text.
package watch
