package suite

import _ "embed"

//go:embed demo.yaml
var demo []byte

// Demo returns the suite of dpsight demo. That suite can only be predicted. It is not in [Names], since those suites
// have recordings in examples.
func Demo() (*Suite, error) { return Parse("demo", demo) }
