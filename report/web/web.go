// Package web is the built front end of the page: what scripts/page.sh makes of the sources beside this file. It is
// committed, so that neither a build nor an install needs Node.
package web

import _ "embed" // the bundle

// Script is the page's program, and Style its style sheet.
var (
	//go:embed dist/page.js
	Script []byte
	//go:embed dist/page.css
	Style []byte
)
