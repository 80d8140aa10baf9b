// Sanitize prepares a store of recorded runs for publication:
//
//	go run ./scripts/sanitize [-raw] STORE
//
// Sanitize replaces host names, user names, GPU UUIDs and absolute paths in every run.json, log and journal, including
// the paths in recorded stacks. After this, Sanitize derives the tables again. Distinct UUIDs stay distinct, so devices
// and samples can still be joined. The tests of examples/tests search independently for what must not be published.
// -raw leaves out the tables, which makes a store three times smaller. "dpsight ingest STORE" derives them again.
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
