// Package watch shows runs that are being recorded on a terminal: the page's Live view, as text.
package watch
