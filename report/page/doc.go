// Package page writes one HTML file that shows runs: the documents of their analyses, and every block of memory. The
// file needs no other file and makes no requests.
package page
