package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas/units"
)

const (
	mostPoints    = 8192 // the most points of a timeline that a page may request: twice the width of a wide screen
	defaultPoints = 2048
)

// Content is what a server shows: ended runs, and runs that are being recorded.
type Content interface {
	// Served returns the ended runs, and a version that changes whenever they change.
	Served() (*selected.Served, int64, error)
	// Running returns the runs that are being recorded, and the version of the ended runs.
	Running() ([]*page.Live, int64)
}

// A Server shows runs to a browser on this machine. A Server reads files and writes none.
type Server struct {
	listener net.Listener
	http     *http.Server
	guard    *guard
}

// Listen begins to serve on 127.0.0.1. Port 0 takes any free port.
func Listen(port int, content Content) (*Server, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("serving on port %d of 127.0.0.1: %w", port, err)
	}
	s := &Server{listener: l}
	s.guard = newHandler(newToken(), s.Port(), content)
	s.http = &http.Server{
		Handler:           s.guard,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	return s, nil
}

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.http.Shutdown(soon) != nil { // a browser is still reading an answer
			s.http.Close()
		}
	})
	defer stop()
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Port returns the port on which the server listens.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// URL returns the page's address with the server's token.
func (s *Server) URL() string { return s.address(s.guard.token) }

// urlOnce returns an address of the page that admits one browser, once.
func (s *Server) urlOnce() string { return s.address(s.guard.admitOnce()) }

func (s *Server) address(token string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/?token=%s", s.Port(), token)
}

// newHandler returns the server's handler, behind a guard with the token. Several servers on one machine have different
// cookies, whose names contain the port.
func newHandler(token string, port int, content Content) *guard {
	h := &handler{content: content}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page)
	mux.HandleFunc("GET /data/about", h.about)
	mux.HandleFunc("GET /data/documents", h.documents)
	mux.HandleFunc("GET /data/device/{device}", h.device)
	mux.HandleFunc("GET /live/runs", h.running)
	mux.HandleFunc("GET /live/run/{run}", h.live)
	return &guard{token: token, cookie: "dpsight-" + strconv.Itoa(port), next: mux}
}

// handler answers the requests that a guard lets through.
type handler struct {
	content Content
}

var servedPage = sync.OnceValues(func() ([]byte, error) {
	var b bytes.Buffer
	err := page.WriteServed(&b)
	return b.Bytes(), err
})

func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	text, err := servedPage()
	give(w, "text/html; charset=utf-8", text, err)
}

func (h *handler) about(w http.ResponseWriter, r *http.Request) {
	t, err := h.told(r)
	give(w, "application/json", t.About, err)
}

func (h *handler) documents(w http.ResponseWriter, r *http.Request) {
	t, err := h.told(r)
	give(w, "application/json", t.Documents, err)
}

// told returns all documents of the ended runs. If the request has the parameter "first", told returns only the
// documents that the page needs first.
func (h *handler) told(r *http.Request) (selected.Told, error) {
	served, _, err := h.content.Served()
	switch {
	case err != nil:
		return selected.Told{}, err
	case r.URL.Query().Has("first"):
		return served.First, nil
	}
	return served.Whole()
}

const arrowStreams = "application/vnd.apache.arrow.stream"

func (h *handler) device(w http.ResponseWriter, r *http.Request) {
	served, _, err := h.content.Served()
	if err != nil {
		give(w, "", nil, err)
		return
	}
	i, err := strconv.Atoi(r.PathValue("device"))
	if err != nil || i < 0 || i >= served.Devices() {
		http.Error(w, "the run has no such device", http.StatusNotFound)
		return
	}
	const all = int64(1) << 40
	from, ok1 := number(r, "from", 0, all)
	to, ok2 := number(r, "to", all, all)
	points, ok3 := number(r, "points", defaultPoints, mostPoints)
	if !ok1 || !ok2 || !ok3 || from > to || points < 1 {
		http.Error(w, "from and to must be numbers of events, and points a number of points", http.StatusBadRequest)
		return
	}
	b, err := served.Device(i, from, to, int(points))
	give(w, arrowStreams, b, err)
}

// running answers with the list of runs that are being recorded or have just ended, and with the version of the ended
// runs.
func (h *handler) running(w http.ResponseWriter, _ *http.Request) {
	runs, version := h.content.Running()
	type row struct {
		RunID string `json:"run_id"`
		Name  string `json:"name"`
		Ended bool   `json:"ended"`
	}
	out := struct {
		Version int64 `json:"version"`
		Runs    []row `json:"runs"`
	}{version, []row{}}
	for _, l := range runs {
		out.Runs = append(out.Runs, row{l.RunID, l.Name, l.Ended})
	}
	b, err := json.Marshal(out)
	give(w, "application/json", b, err)
}

// live answers with the state of a single run that is being recorded or has just ended.
func (h *handler) live(w http.ResponseWriter, r *http.Request) {
	runs, _ := h.content.Running()
	for _, l := range runs {
		if l.RunID == r.PathValue("run") {
			b, err := page.LiveStreams(l)
			give(w, arrowStreams, b, err)
			return
		}
	}
	http.Error(w, "no such run is being recorded", http.StatusNotFound)
}

// number returns a request's parameter as a number, and whether it lies between 0 and most. If the request lacks the
// parameter, number returns otherwise.
func number(r *http.Request, name string, otherwise, most int64) (int64, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && n <= most
}

// give answers a request with a body. If err is not nil, it answers with the error.
func give(w http.ResponseWriter, kind string, body []byte, err error) {
	if err != nil {
		http.Error(w, printable(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

func printable(text string) string { return units.OneLine(text) }
