// Sanitize makes a store of recorded runs fit to be published:
//
//	go run ./scripts/sanitize STORE
//
// It replaces host names, user names, GPU UUIDs and absolute paths in every run.json, log and journal, and derives the
// tables anew from these. Distinct UUIDs stay distinct, so that devices and samples can still be joined. What must not be
// published is searched for by examples/examples_test.go, independently.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sanitize STORE")
		os.Exit(2)
	}
	n, err := sanitize(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sanitize:", err)
		os.Exit(1)
	}
	fmt.Printf("sanitized %d runs\n", n)
}
