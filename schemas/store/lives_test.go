package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// If blocks or events have impossible numbers, reading the lives of blocks reports the table as damaged.
func TestLivesRefuseWhatNoTableHolds(t *testing.T) {
	for what, rows := range map[string]struct {
		blocks []schemas.Allocation
		owners []schemas.Owner
	}{
		"block 3 comes where block 2 should": {[]schemas.Allocation{{AllocID: 1}, {AllocID: 3}}, nil},
		"an event has the number -1":         {[]schemas.Allocation{{AllocID: 1, FreeRequestedSeq: -1}}, nil},
		"an event has the number 4294967296": {[]schemas.Allocation{{AllocID: 1}},
			[]schemas.Owner{{AllocID: 1, BeginSeq: 1 << 32}}},
		"a block has the number 0": {[]schemas.Allocation{{AllocID: 1}}, []schemas.Owner{{AllocID: 0}}},
		"":                         {[]schemas.Allocation{{AllocID: 1}}, []schemas.Owner{{AllocID: 9}}},
	} {
		dir := t.TempDir()
		if err := errors.Join(schemas.Allocations.Write(dir, rows.blocks),
			schemas.Owners.Write(dir, rows.owners)); err != nil {
			t.Fatal(err)
		}
		all, err := lives(dir)
		if what == "" && (err != nil || len(all) != 1 || len(all[0].Place) != 0) ||
			what != "" && (err == nil || !strings.Contains(err.Error(), what)) {
			t.Errorf("%q: %v, %v", what, all, err)
		}
	}
}
