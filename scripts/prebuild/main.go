// Prebuild compiles the phantom GPU for the torch of a Python interpreter, and writes it as an archive that a build of
// dpsight can embed:
//
//	go run ./scripts/prebuild CC CXX PYTHON FOLDER
//
// Prebuild prints the archive's path. scripts/wheels.py runs it, with compilers that link for an old glibc.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dpsight/dpsight/collect/phantom"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: prebuild CC CXX PYTHON FOLDER")
		os.Exit(2)
	}
	options := phantom.Options{Compiler: os.Args[1], CXXCompiler: os.Args[2], Python: os.Args[3]}
	path, err := phantom.Prebuild(context.Background(), options, os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, "prebuild:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}
