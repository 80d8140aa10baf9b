package collect

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// maskJournals takes the secrets out of the live journals of a spool folder: exceptions, configurations and names may hold some.
// It happens before they are sealed, when their processes have ended.
func maskJournals(dir string, secrets *mask.Secrets) error {
	if secrets.Empty() {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.frames"))
	for _, path := range files {
		b, e := os.ReadFile(path)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		if !secrets.In(b) {
			continue
		}
		masked, e := maskFrames(b, secrets)
		if e == nil {
			e = schemas.WriteFile(path, func(w io.Writer) error {
				_, err := w.Write(masked)
				return err
			})
		}
		err = errors.Join(err, e)
	}
	return err
}

// maskFrames masks the payloads of a frames file. In pickles a secret keeps its length, because the length
// stands before it; in packed records there is no text.
func maskFrames(b []byte, secrets *mask.Secrets) ([]byte, error) {
	frames, err := spool.ScanFrames(b)
	var torn *spool.TornError
	if err != nil && !errors.As(err, &torn) {
		return nil, err
	}
	out := spool.AppendHeader(nil)
	end := len(out)
	for _, f := range frames {
		payload := f.Payload
		switch f.Type {
		case spool.FrameTags, spool.FrameTimes:
		case spool.FrameAllocator:
			payload = secrets.SameLength(payload)
		default:
			payload = secrets.Bytes(payload)
		}
		out = spool.AppendFrame(out, f.Type, payload)
		end = len(spool.AppendFrame(nil, f.Type, nil)) + len(f.Payload) + int(f.Offset)
	}
	if torn != nil && end <= len(b) {
		out = append(out, secrets.SameLength(b[end:])...)
	}
	return out, nil
}

// recorded fills a manifest from what the agents wrote.
func recorded(m *schemas.Manifest, journals []*spool.Journal) {
	for _, j := range journals {
		if m.Environment == nil {
			m.Environment = j.Environment
		}
		if m.Privacy == nil {
			m.Privacy = j.Privacy
		}
		for name, value := range j.Config {
			// What the script says of itself comes after what it was started with.
			if _, ok := m.Params[name]; !ok {
				m.Params[name] = value
			}
		}
		if len(j.Damaged) > 0 {
			m.Warnings = append(m.Warnings, plural(len(j.Damaged), "frame", "frames")+" of a journal cannot be read: "+firstLine(j.Damaged[0].Error()))
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
