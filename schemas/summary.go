package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
)

// SummaryFile is the name of a run's summary in its folder.
const SummaryFile = "summary.json"

// SummarySchema is the version that this package writes.
const SummarySchema = "dpsight.summary/1"

// Summary (summary.json) is what commands over many runs read in place of a run's tables: its peak, categories, phases,
// times and identity. ingest writes a summary, and it is valid only for the manifest and the report from which it was
// made. dpsight can make a summary again from the manifest, the report and the tables.
type Summary struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	// Kept is the version of the contents of Row and Compared (see analyze.KeptVersion). A summary of another
	// version is ignored.
	Kept     int    `json:"kept"`     // version of the summary's form
	Manifest string `json:"manifest"` // digest of run.json: "sha256:" and 64 hexadecimal digits
	Report   string `json:"report"`   // digest of ingest.json
	// Row is the run's row in the list of runs. Compared is the data that a comparison of many runs uses. Origin has
	// the facts to which Row and Compared refer and which many runs share. Package analyze encodes the three.
	Origin   json.RawMessage `json:"origin"`
	Row      json.RawMessage `json:"row"`
	Compared json.RawMessage `json:"compared"`
}

// WriteSummary writes summary.json into a run folder.
func WriteSummary(dir string, s *Summary) error {
	s.Schema = SummarySchema
	return WriteDocument(filepath.Join(dir, SummaryFile), s)
}

// ReadSummary reads summary.json of a run folder. ReadSummary returns an error if the summary does not belong to the
// manifest and the report beside it, or if its version is not the one given by kept.
func ReadSummary(dir string, kept int) (*Summary, error) {
	s := new(Summary)
	if err := ReadDocument(filepath.Join(dir, SummaryFile), SummarySchema, s); err != nil {
		return nil, err
	}
	manifest, report, err := SummaryDigests(dir)
	switch {
	case err != nil:
		return nil, err
	case s.Kept != kept || s.Manifest != manifest || s.Report != report:
		return nil, fmt.Errorf("%s is of other files than those beside it", SummaryFile)
	}
	return s, nil
}

// SummaryDigests returns the digests of the two documents in a run folder from which its summary is made.
func SummaryDigests(dir string) (manifest, report string, err error) {
	of := func(name string) (string, error) {
		b, err := ReadRegular(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(b)
		return "sha256:" + hex.EncodeToString(sum[:]), nil
	}
	if manifest, err = of(ManifestFile); err != nil {
		return "", "", err
	}
	report, err = of(IngestReportFile)
	return manifest, report, err
}
