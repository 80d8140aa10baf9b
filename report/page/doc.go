// Package page writes one HTML file that shows runs: their documents, and their blocks one by one. The file needs
// no other file and makes no requests.
package page
