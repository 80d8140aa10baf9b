// Sanitize makes a store of recorded runs fit to be published:
//
//	go run ./scripts/sanitize [-raw] STORE
//
// It replaces host names, user names, GPU UUIDs and absolute paths in every run.json, log and journal, those of
// recorded stacks included, and derives the tables anew from these. Distinct UUIDs stay distinct, so that devices and
// samples can still be joined. What must not be published is searched for by examples/examples_test.go, independently.
// With -raw the tables are left out: "dpsight ingest STORE" derives them, and a store takes a third of the space.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	raw := flag.Bool("raw", false, "leave out what ingest derives")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: sanitize [-raw] STORE")
		os.Exit(2)
	}
	n, err := sanitize(flag.Arg(0), *raw)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sanitize:", err)
		os.Exit(1)
	}
	fmt.Printf("sanitized %d runs\n", n)
}
