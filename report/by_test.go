package report_test

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// byDocument returns the breakdown of one run by module and category. Two modules differ only by their number, and some
// blocks belong to no module.
func byDocument() grouping.BreakdownByDocument {
	const mib = 1 << 20
	row := func(key string, modules int, mibs int64, rows ...grouping.ByRow) grouping.ByRow {
		r := grouping.ByRow{Modules: modules, Bytes: mibs * mib, Evidence: memory.Evidence{TaggedBytes: mibs * mib},
			Blocks: mibs, Rows: rows}
		if key != "" {
			r.Key = &key
		}
		return r
	}
	device := grouping.DeviceBy{Device: "cuda:0", At: memory.Moment{Event: 7}, AllocatedBytes: 10 * mib,
		Rows: []grouping.ByRow{
			row("layers.*.q", 2, 6, row(schemas.Parameters, 0, 4), row(schemas.Activations, 0, 2)),
			row("head", 1, 3, row(schemas.Parameters, 0, 3)),
			row("", 0, 1, row(schemas.Activations, 0, 1)),
		},
		Columns:      []grouping.ByRow{row(schemas.Parameters, 0, 7), row(schemas.Activations, 0, 3)},
		UnknownBytes: map[grouping.Dimension]int64{grouping.DimensionModule: mib, grouping.DimensionCategory: 0},
		ModuleBytes:  &memory.ModuleBytes{OwnerBytes: 2 * mib, NameBytes: 7 * mib, NoneBytes: mib},
		Conservation: memory.Conservation{Verdict: schemas.Exact},
		Remarks:      []memory.Remark{{Kind: memory.RemarkOfIngest, Text: "cuda:0: beware"}}}
	by := grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionModule, grouping.DimensionCategory},
		Fold: true}
	return grouping.NewBreakdownByDocument(by,
		grouping.BreakdownByRun{Identity: identity.Identity{RunID: "r1", Name: "ghost", Status: schemas.StatusOK,
			Source: schemas.Predicted}, Devices: []grouping.DeviceBy{device}},
		grouping.BreakdownByRun{Identity: identity.Identity{RunID: "r2", Name: "bare", Status: schemas.StatusOK,
			Source: schemas.Measured, Params: map[string]any{"bare": true}}})
}

const byNotes = `note: –: the module of 1.00 MiB (10.0 %) is not known
note: modules are known for 2.00 MiB from the owner's tag or rule, for 7.00 MiB from the parameter that the owner ` +
	`names, for 0.00 MiB from what ran at the block's birth
note: conservation: exact, residue 0 B
note: cuda:0: beware
note: predicted: bytes that torch's own allocator would hold, recorded on a phantom GPU; nothing was computed and ` +
	`there are no times

Runs without a breakdown
Run          Run id  Status  Reason
-----------  ------  ------  ------------------------------
bare [bare]  r2      ok      bare: counters and timers only
`

func TestBreakdownByLayouts(t *testing.T) {
	doc := byDocument()
	const grid = `ghost [predicted (phantom)], cuda:0, after event 7, by module and category
Module         parameters  activations  all MiB      %
-------------  ----------  -----------  -------  -----
layers.*.q ×2        4.00         2.00     6.00   60.0
head                 3.00                  3.00   30.0
–                                 1.00     1.00   10.0
allocated            7.00         3.00    10.00  100.0
note: category known by tag: 10.00 MiB; by lifetime: 0.00 MiB; by phase only: 0.00 MiB
`
	if got, want := printed(t, "table", report.BreakdownByTables(doc)), grid+byNotes; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// If some values of the second dimension are folded into others, these have no column. In this case, the table
	// lists the second dimension below each value of the first.
	d := &doc.Runs[0].Devices[0]
	d.Rows[0].Rows[1] = grouping.ByRow{Others: 3, Bytes: 2 << 20, Evidence: memory.Evidence{LifetimeBytes: 1 << 20,
		PhaseOnlyBytes: 1 << 20}, Blocks: 4}
	const tree = `ghost [predicted (phantom)], cuda:0, after event 7, by module and category
Module         Category       MiB      %  Tagged  By lifetime  By phase only  Blocks
-------------  -----------  -----  -----  ------  -----------  -------------  ------
layers.*.q ×2                6.00   60.0    6.00         0.00           0.00       6
               parameters    4.00   40.0    4.00         0.00           0.00       4
               3 others      2.00   20.0    0.00         1.00           1.00       4
head                         3.00   30.0    3.00         0.00           0.00       3
               parameters    3.00   30.0    3.00         0.00           0.00       3
–                            1.00   10.0    1.00         0.00           0.00       1
               activations   1.00   10.0    1.00         0.00           0.00       1
allocated                   10.00  100.0       –            –              –       –
`
	if got, want := printed(t, "table", report.BreakdownByTables(doc)), tree+byNotes; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for format, want := range map[string]string{
		"markdown": `| layers.\*.q ×2 |  | 6.00 | 60.0 | 6.00 | 0.00 | 0.00 | 6 |`,
		"latex":    `layers.*.q $\times$2 &  & 6.00 & 60.0 & 6.00 & 0.00 & 0.00 & 6 \\`,
		"json":     `"schema": "dpsight.breakdown_by/1"`,
	} {
		if got := printed(t, format, report.BreakdownByTables(doc)); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestBreakdownByRecords(t *testing.T) {
	const want = `run_id,name,status,source,profile,device,rank,event,module,category,modules,bytes,tagged_bytes,` +
		`lifetime_bytes,phase_only_bytes,blocks
r1,ghost,ok,predicted,,cuda:0,0,7,layers.*.q,parameters,2,4194304,4194304,0,0,4
r1,ghost,ok,predicted,,cuda:0,0,7,layers.*.q,activations,2,2097152,2097152,0,0,2
r1,ghost,ok,predicted,,cuda:0,0,7,head,parameters,1,3145728,3145728,0,0,3
r1,ghost,ok,predicted,,cuda:0,0,7,,activations,0,1048576,1048576,0,0,1
r2,bare,ok,measured,,,,,,,,,,,,
`
	if got := printed(t, "csv", []table.Table{report.BreakdownByRecords(byDocument())}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
