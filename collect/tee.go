package collect

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/schemas"
)

// The names of the files with an experiment's output.
const (
	StdoutFile = schemas.StdoutFile
	StderrFile = schemas.StderrFile
)

// maxLine is the most characters of the last line that are kept for the manifest.
const maxLine = 300

// ansi matches terminal sequences for colours and the cursor. A traceback on a terminal contains some.
var ansi = regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`)

// A tee copies one stream of the experiment to its log and shows it, both masked. The shown copy masks only the
// collected secrets, since a prompt cannot wait for the end of its line. If the log or the terminal fails, the rest of
// the stream is still read, so the experiment never stops.
type tee struct {
	read *os.File
	log  *os.File
	last lastLineWriter
	done chan struct{}
	err  error // error of writing the log; valid once done is closed
}

// startTee begins to copy what read provides, until its end. live may be nil.
func startTee(path string, read *os.File, live io.Writer, secrets *mask.Secrets) (*tee, error) {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	t := &tee{read: read, log: log, done: make(chan struct{})}
	go t.copy(live, secrets)
	return t, nil
}

func (t *tee) copy(live io.Writer, secrets *mask.Secrets) {
	defer close(t.done)
	file := &sticky{w: t.log}
	kept := secrets.NewLineWriter(io.MultiWriter(file, &t.last))
	shown := secrets.NewWriter(io.Discard)
	if live != nil {
		shown = secrets.NewWriter(&sticky{w: live})
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := t.read.Read(buf)
		shown.Write(buf[:n])
		kept.Write(buf[:n])
		if err != nil {
			break
		}
	}
	shown.Flush()
	kept.Flush()
	t.err = errors.Join(file.err, t.log.Sync(), t.log.Close())
}

// close ends the copy. A process that still holds the stream open does not belong to the run.
func (t *tee) close(wait <-chan struct{}) error {
	select {
	case <-t.done:
	case <-wait:
		t.read.Close()
		<-t.done
	}
	t.read.Close()
	return t.err
}

// sticky keeps the first error of a writer, and ignores later writes.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(b []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	return len(b), nil
}

// lastLineWriter keeps the last line that contains words.
type lastLineWriter struct {
	mu      sync.Mutex
	line    []byte // the last complete line
	current []byte
	elastic elasticReport
}

func (l *lastLineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range b {
		if c != '\n' && c != '\r' {
			if len(l.current) < maxLine {
				l.current = append(l.current, c)
			}
			continue
		}
		if text := string(l.current); !isRule(text) {
			l.line = append(l.line[:0], text...)
			l.elastic.line(text)
		}
		l.current = l.current[:0]
	}
	return len(b), nil
}

// String returns the last line, or a launcher's report on its processes.
func (l *lastLineWriter) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := l.elastic.String(); text != "" {
		return text
	}
	for _, b := range [][]byte{l.current, l.line} {
		b = ansi.ReplaceAll(b, nil)
		if s := strings.TrimSpace(strings.ToValidUTF8(string(b), "")); !isRule(s) {
			return s
		}
	}
	return ""
}
