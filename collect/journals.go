package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/units"
)

// maskJournals masks secrets in the live journals of a spool folder: exceptions, configurations and names may contain
// some. Journals are masked after their processes have ended and before they are sealed.
func maskJournals(dir string, secrets *mask.Secrets) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.frames"))
	for _, path := range files {
		b, e := schemas.ReadRegular(path)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		masked, e := maskFrames(b, secrets)
		if e == nil && !bytes.Equal(masked, b) {
			e = schemas.WriteFile(path, func(w io.Writer) error {
				_, err := w.Write(masked)
				return err
			})
		}
		err = errors.Join(err, e)
	}
	return err
}

// minPickled is the length in bytes of the shortest secret that is searched for in pickles. Shorter texts could be
// numbers or names of keys, which stand there without quotes.
const minPickled = 8

// maskFrames masks the payloads of a frames file that contain text chosen by a script or its user. maskFrames does not
// replace bytes blindly: a secret may happen to be a word of the format, or the digits of an address.
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
		case spool.FrameNames, spool.FrameModules, spool.FrameConfig, spool.FrameMetric, spool.FramePrivacy,
			spool.FrameException, spool.FramePrediction, spool.FrameCode, spool.FrameFailure,
			spool.FrameLines:
			payload = maskJSON(payload, secrets, "")
		case spool.FrameEnvironment:
			payload = maskJSON(payload, secrets, "variables")
		case spool.FrameAllocator:
			if bytes.Contains(payload, []byte("filename")) { // the file name in a stack's frame
				payload = secrets.AtLeast(minPickled).SameLength(payload)
			}
		}
		out = spool.AppendFrame(out, f.Type, payload)
		end = len(spool.AppendFrame(nil, f.Type, nil)) + len(f.Payload) + int(f.Offset)
	}
	if torn != nil && end <= len(b) {
		out = append(out, secrets.SameLength(b[end:])...)
	}
	return out, nil
}

// maskJSON masks the text values in a JSON object, but neither its keys nor its numbers. If key is given, it masks only
// values below that key.
func maskJSON(payload []byte, secrets *mask.Secrets, key string) []byte {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber() // addresses have more digits than a float can hold
	var v map[string]any
	if d.Decode(&v) != nil {
		// The payload is no JSON, which no program parses, so it suffices to mask all secrets.
		return secrets.SameLength(payload)
	}
	found := false
	if key == "" {
		maskText(v, secrets, &found)
	} else if part, ok := v[key]; ok {
		v[key] = maskText(part, secrets, &found)
	}
	if !found {
		return payload
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return secrets.SameLength(payload)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func maskText(v any, secrets *mask.Secrets, found *bool) any {
	switch v := v.(type) {
	case string:
		masked := secrets.String(v)
		*found = *found || masked != v
		return masked
	case []any:
		for i := range v {
			v[i] = maskText(v[i], secrets, found)
		}
	case map[string]any:
		for k := range v {
			v[k] = maskText(v[k], secrets, found)
		}
	}
	return v
}

// recorded copies facts from the agents' journals into a manifest.
func recorded(m *schemas.Manifest, journals []*spool.Journal) {
	m.Code = codeOf(journals)
	for _, j := range journals {
		if m.Environment == nil {
			m.Environment = j.Environment
		}
		if m.Privacy == nil {
			m.Privacy = j.Privacy
		}
		for name, value := range j.Config {
			// The script's own parameters have lower precedence than the options with which it was started.
			if _, ok := m.Params[name]; !ok {
				m.Params[name] = value
			}
		}
		if len(j.Damaged) > 0 {
			m.Warnings = append(m.Warnings, "dpsight cannot read "+units.Plural(len(j.Damaged), "frame", "frames")+
				" of a journal: "+firstLine(j.Damaged[0].Error()))
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
