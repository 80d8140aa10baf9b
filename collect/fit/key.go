package fit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// A Probe is the content that determines one predicted run of a search: equal contents have equal answers.
type Probe struct {
	Params  map[string]any `json:"params"` // parameters from collect.Machine.ParamsWithMachine
	Command []string       `json:"command,omitempty"`
	Profile string         `json:"profile"`
	Folder  string         `json:"folder,omitempty"` // folder that a command runs in
	Version string         `json:"version"`          // dpsight's version
	Basis   collect.Basis  `json:"basis"`
}

// Key returns a hash of the content. The content has no secrets.
func (p Probe) Key() (string, error) {
	secrets := mask.Gather(p.Command, p.Basis.Variables, p.Params)
	p.Params, p.Command, p.Basis.Variables = secrets.Params(p.Params), secrets.Command(p.Command),
		secrets.Command(p.Basis.Variables)
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// made returns the newest reusable run of a probe in a store, or nil. A run is reusable if it ended by itself, well or
// out of memory, and began after the last change to the files that it runs.
func made(st *store.Store, key string, changed func() Change) (*store.Run, error) {
	runs, _, err := st.Runs()
	if err != nil {
		return nil, err
	}
	var newest *store.Run
	var since *Change // computed once, and only if there is a run that it could rule out
	for i := range runs {
		m := runs[i].Manifest
		if m.Suite == nil || m.Suite.Key != key || m.Interrupted || !runs[i].Ingested() ||
			m.Status != schemas.StatusOK && m.Status != schemas.StatusOOM {
			continue
		}
		if since == nil {
			since = new(changed())
		}
		if !since.after(m.Start) && (newest == nil || m.Start.After(newest.Manifest.Start)) {
			newest = &runs[i]
		}
	}
	return newest, nil
}
