// Package web has the built front end of the page. scripts/page.sh builds it from the sources beside this file. The
// front end is committed in packed form, so that neither a build nor an install needs Node.
package web

import (
	"bytes"
	_ "embed" // the bundle of scripts is embedded
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

var (
	//go:embed dist/page.js.gz
	script []byte
	//go:embed dist/page.css.gz
	style []byte
)

// Script is the page's program, and Style is its style sheet.
var (
	Script = sync.OnceValue(func() []byte { return unpacked(script) })
	Style  = sync.OnceValue(func() []byte { return unpacked(style) })
)

// unpacked returns the contents of a file of the bundle. The bundle is part of this program, so a file that cannot
// be read is a build error.
func unpacked(packed []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return out
}
