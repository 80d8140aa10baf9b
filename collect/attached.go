package collect

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// attachedSamples is a file in the spool folder of a run that dpsight.attach() wrote. Each line is a sample.
const attachedSamples = "samples.jsonl"

// attachedSample is a line of the file attachedSamples: a device's sample if the line names a device, else the
// process's.
type attachedSample struct {
	TimeNS      int64             `json:"time_ns"`
	RSS         int64             `json:"rss"`
	CPUNS       int64             `json:"cpu_ns"`
	PinnedBytes *int64            `json:"pinned"`
	Device      *int32            `json:"device"`
	Used        int64             `json:"used"`
	Reserved    *int64            `json:"reserved"`
	Free        int64             `json:"free"`
	Processes   [][2]*json.Number `json:"processes"` // process id and bytes; null = not known
}

// finishAttached completes a run that dpsight.attach() wrote, as the collector does for its own runs. finishAttached
// makes tables of the samples, and copies facts from the journal into the manifest.
func finishAttached(dir string, m *schemas.Manifest) error {
	journals, err := spool.ReadDir(filepath.Join(dir, spool.Dir))
	if err != nil {
		return err
	}
	recorded(m, journals)
	if facts := host.Facts(); facts.Name == m.Host.Name {
		m.Host = facts
	}
	m.Collector.Built = new(Built())
	if err := attachedTables(dir, m); err != nil {
		return err
	}
	if m.Tables, err = schemas.TableDigests(dir, schemas.SampledTables()...); err != nil {
		return err
	}
	return schemas.WriteManifest(dir, m)
}

// attachedTables makes the tables of samples for a run that dpsight.attach() wrote.
func attachedTables(dir string, m *schemas.Manifest) error {
	f, err := os.Open(filepath.Join(dir, spool.Dir, attachedSamples))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	var devices []schemas.Sample
	var process []schemas.HostSample
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s attachedSample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("%s: %w", attachedSamples, err)
		}
		if s.Device != nil {
			devices = append(devices, deviceSample(m, &s))
			continue
		}
		process = append(process, schemas.HostSample{RunID: m.RunID, TimeNS: s.TimeNS, RSSBytes: s.RSS, CPUNS: s.CPUNS,
			Processes: 1, PinnedBytes: s.PinnedBytes})
	}
	m.Collector.Samples = int64(len(devices))
	return errors.Join(writeSamples(dir, schemas.Samples, devices), writeSamples(dir, schemas.HostSamples, process))
}

// deviceSample converts a sample of a device. In a container the driver may number processes differently, so that the
// sample does not list the run's own process.
func deviceSample(m *schemas.Manifest, s *attachedSample) schemas.Sample {
	row := schemas.Sample{RunID: m.RunID, Device: *s.Device, TimeNS: s.TimeNS, UsedBytes: s.Used, FreeBytes: s.Free,
		MemoryAPI: 1}
	if s.Reserved != nil {
		row.ReservedBytes, row.MemoryAPI = *s.Reserved, 2
	}
	for _, p := range s.Processes {
		if p[0] == nil || p[0].String() != fmt.Sprint(m.Attached.PID) {
			row.OtherProcesses++
			continue
		}
		if p[1] != nil {
			if bytes, err := p[1].Int64(); err == nil {
				row.ProcessBytes = &bytes
			}
		}
	}
	return row
}

func writeSamples[T any](dir string, table schemas.Table[T], rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	return schemas.WriteFile(filepath.Join(dir, table.File()), func(f io.Writer) error {
		w := table.NewWriter(f)
		if err := w.Write(rows); err != nil {
			return err
		}
		return w.Close()
	})
}
