package ingest

import (
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// processes returns the rows of processes.parquet for a journal's process, one for each device that it used.
func processes(m *schemas.Manifest, j *spool.Journal, recs []*recording, r *report) []schemas.Process {
	p := schemas.Process{RunID: m.RunID, Rank: j.Rank, PID: int64(j.Header.PID), StartNS: j.Header.StartNS,
		Ended: ended(j)}
	if n := len(j.Marks); n > 0 {
		p.EndNS = j.Marks[n-1].TimeNS
	}
	if len(recs) == 0 {
		return []schemas.Process{p}
	}
	var rows []schemas.Process
	for _, rec := range recs {
		p.Device = rec.device
		p.UUID = identify(m, j, rec.device, r)
		rows = append(rows, p)
	}
	return rows
}

func ended(j *spool.Journal) string {
	switch {
	case j.Exception != nil:
		return "exception"
	case j.End != nil:
		return "exit"
	}
	return "unknown"
}

// identify returns the UUID of the GPU behind one of torch's ordinals, "" if it cannot be determined. The manifest's
// GPUs are in NVML's order, and the process may number its GPUs in another order. So identify does not use an ordinal
// as an index.
func identify(m *schemas.Manifest, j *spool.Journal, device int32, r *report) string {
	measured := m.Source == schemas.Measured
	for _, d := range j.Devices {
		if d.Device != device || d.UUID == nil {
			continue
		}
		for _, g := range m.GPUs {
			if strings.EqualFold(bareUUID(g.UUID), *d.UUID) {
				return g.UUID
			}
		}
		if measured && len(m.GPUs) > 0 {
			r.warn("rank %d, device %d: NVML lists no GPU with its UUID (it may be a MIG instance): its samples "+
				"cannot be told from others'", j.Rank, device)
		}
		return *d.UUID
	}
	// Older agents report no UUID. If the run could see only one GPU, the process used that GPU.
	if len(m.GPUs) == 1 {
		return m.GPUs[0].UUID
	}
	if measured && len(m.GPUs) > 1 {
		r.warn("rank %d, device %d: which of %d GPUs it is was not recorded: its samples cannot be told from others'",
			j.Rank, device, len(m.GPUs))
	}
	return ""
}

// bareUUID returns a UUID without NVML's prefix.
func bareUUID(uuid string) string {
	if _, rest, ok := strings.Cut(uuid, "-"); ok && (strings.HasPrefix(uuid, "GPU-") ||
		strings.HasPrefix(uuid, "MIG-")) {
		return rest
	}
	return uuid
}
