package store

import (
	"encoding/binary"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// fileStat has the facts about a file that a stamp contains.
type fileStat struct {
	at, size int64
	inode    uint64 // number of the file on disk: a file that replaces another has a new number
	folder   bool
}

// documents says which documents a run folder has.
type documents struct{ manifest, report bool }

// stampOf returns, as a string, the sizes, times and inode numbers of a run folder and its documents. The folder's
// values change whenever a file in it is added, removed or replaced. stampOf returns "" if the stamp is not reliable,
// because something was written just now.
func (s *statter) stampOf(folder string, now time.Time) (stamp string, has documents) {
	b := make([]byte, 0, 4*24)
	latest := now.Add(-settled).UnixNano()
	fresh := false
	for _, name := range []string{"", schemas.ManifestFile, schemas.IngestReportFile, schemas.SummaryFile} {
		path := folder
		if name != "" {
			path += "/" + name
		}
		st := s.stat(path)
		if st == nil {
			b = append(b, 0)
			continue
		}
		switch name {
		case schemas.ManifestFile:
			has.manifest = !st.folder
		case schemas.IngestReportFile:
			has.report = true
		}
		fresh = fresh || st.at > latest
		b = binary.BigEndian.AppendUint64(b, uint64(st.at))
		if name != "" {
			b = binary.BigEndian.AppendUint64(b, uint64(st.size))
		}
		b = binary.BigEndian.AppendUint64(b, st.inode)
	}
	if fresh {
		return "", has
	}
	return string(b), has
}
