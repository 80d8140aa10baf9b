package findings

import (
	"errors"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Checked is one run with what can be found in it alone.
type Checked struct {
	Summary   analyze.Summary
	findings  []Finding
	notLooked []string
}

// CheckRun looks for everything that one run's tables tell. It wants all tables, with detail.
func CheckRun(in schemas.Tables) Checked {
	ledgers := memory.NewLedgers(&in)
	n := Checked{Summary: analyze.SummarizeWith(&in, ledgers), notLooked: []string{}}
	if in.Report == nil {
		n.notLooked = append(n.notLooked, "anything: the run has not been ingested")
		return n
	}
	n.findings = append(n.findings, failures(&in, ledgers)...)
	var none *memory.NoEventsError
	if err := memory.NoEvents(&in); errors.As(err, &none) {
		n.notLooked = append(n.notLooked, "bytes: "+none.Reason)
	} else if x := newFinder(&in, &n.Summary, ledgers); x != nil {
		for _, look := range []func(*finder) []Finding{(*finder).growth, (*finder).cached, (*finder).gradients,
			(*finder).hooks, (*finder).workspaces, (*finder).perSample,
			(*finder).clipping, (*finder).outputs, (*finder).optimizer, (*finder).slack, (*finder).rule,
			(*finder).knowledge} {
			n.findings = append(n.findings, look(x)...)
		}
		n.notLooked = append(n.notLooked, x.notLooked...)
	}
	if in.Manifest.Source == schemas.Measured {
		n.findings = append(n.findings, disturbances(&in, &n.Summary)...)
	} else {
		n.notLooked = append(n.notLooked, "times: "+in.Manifest.Source+" runs have none")
	}
	return n
}
