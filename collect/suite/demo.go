package suite

import _ "embed"

//go:embed demo.yaml
var demo []byte

// Demo returns the suite of dpsight demo. The demo's suite is only predicted. It is not among [Names], whose recordings
// are in examples.
func Demo() (*Suite, error) { return Parse("demo", demo) }
