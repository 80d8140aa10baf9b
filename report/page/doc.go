// Package page writes one HTML file that shows runs: their documents, and their blocks one by one. The file needs
// nothing beside it, and asks for nothing.
package page
