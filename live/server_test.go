package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/report/web"
)

const testToken = "0123456789abcdef0123456789abcdef"

// recorded returns a view of the recordings in examples/headline.
var recorded = sync.OnceValue(func() *View {
	return NewView(quietSource("../examples/headline"), nil, func(string) bool { return false })
})

func quietSource(store string) *selected.Source { return &selected.Source{Store: store, Named: true} }

// testHandler returns a server's handler with its guard.
func testHandler(t testing.TB) http.Handler {
	t.Helper()
	if _, _, err := recorded().Served(); err != nil {
		t.Fatal(err)
	}
	return newHandler(testToken, 8642, recorded())
}

func request(method, target string, change func(*http.Request)) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:8642"+target, nil)
	r.AddCookie(&http.Cookie{Name: "dpsight-8642", Value: testToken})
	if change != nil {
		change(r)
	}
	return r
}

// If a request does not come from a page that has the server's token, it gets no data.
func TestGuard(t *testing.T) {
	h := testHandler(t)
	without := func(r *http.Request) { r.Header.Del("Cookie") }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, test := range []struct {
		name           string
		method, target string
		change         func(*http.Request)
		status         int
		says           string
	}{
		{"the page", "GET", "/", nil, 200, "<!doctype html>"},
		{"the documents", "GET", "/data/documents", nil, 200, `"breakdown"`},
		{"only whether they are there", "HEAD", "/data/documents", nil, 200, ""},
		{"through a tunnel", "GET", "/data/about", host("localhost:9000"), 200, `"categories"`},
		{"the page's own request", "GET", "/data/about", header("Origin", "http://127.0.0.1:8642"), 200, "devices"},
		{"a browser's word for it", "GET", "/data/about", header("Sec-Fetch-Site", "same-origin"), 200, "devices"},
		{"no token", "GET", "/", without, 403, "token is missing"},
		{"no token for data", "GET", "/data/documents", without, 403, "token is missing"},
		{"a wrong token", "GET", "/?token=0123456789abcdef0123456789abcdee", without, 403, "token is wrong"},
		{"a shorter token", "GET", "/?token=0123", without, 403, "token is wrong"},
		{"an empty token", "GET", "/?token=", without, 403, "token is wrong"},
		{"a wrong cookie", "GET", "/data/about", header("Cookie", "dpsight-8642=0123"), 403, "token is missing"},
		{"another server's cookie", "GET", "/data/about", header("Cookie", "dpsight-1="+testToken), 403, "missing"},
		{"a token where none is asked for", "GET", "/data/about?token=" + testToken, without, 403, "missing"},
		{"DNS rebinding", "GET", "/data/about", host("evil.example:8642"), 421, "not to evil.example"},
		{"a name that looks alike", "GET", "/", host("127.0.0.1.evil.example"), 421, "127.0.0.1 and localhost"},
		{"no host", "GET", "/", host(""), 421, "127.0.0.1 and localhost"},
		{"another page", "GET", "/data/about", header("Origin", "https://evil.example"), 403, "other pages"},
		{"another port", "GET", "/data/about", header("Origin", "http://127.0.0.1:8643"), 403, "other pages"},
		{"a file", "GET", "/data/about", header("Origin", "null"), 403, "other pages"},
		{"a page's picture", "GET", "/", header("Sec-Fetch-Site", "cross-site"), 403, "other pages"},
		{"another port's page", "GET", "/data/about", header("Sec-Fetch-Site", "same-site"), 403, "other pages"},
		{"writing", "POST", "/", nil, 405, "GET and HEAD"},
		{"removing", "DELETE", "/data/about", nil, 405, "GET and HEAD"},
		{"asking what is possible", "OPTIONS", "/", nil, 405, "GET and HEAD"},
		{"out of the store", "GET", "/live/run/..%2f..%2fgo.mod", nil, 404, "no such run"},
		{"out of the data", "GET", "/data/../../../etc/passwd", nil, 307, ""},
		{"out of the devices", "GET", "/data/device/..%2f..%2frun.json", nil, 404, "no such device"},
		{"a device that is not there", "GET", "/data/device/999", nil, 404, "no such device"},
		{"a device below the first", "GET", "/data/device/-1", nil, 404, "no such device"},
		{"events that are none", "GET", "/data/device/0?from=x", nil, 400, "numbers of events"},
		{"events backwards", "GET", "/data/device/0?from=9&to=3", nil, 400, "numbers of events"},
		{"too many points", "GET", "/data/device/0?points=99999999", nil, 400, "numbers of events"},
		{"a path that is none", "GET", "/run.json", nil, 404, "not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(test.method, test.target, test.change))
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.says) {
				t.Errorf("%d: %.200q, want %d with %q", w.Code, w.Body, test.status, test.says)
			}
			if w.Code >= 300 && strings.Contains(w.Body.String(), "categories") {
				t.Errorf("what is refused has data: %.200q", w.Body)
			}
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
				"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") ||
				!strings.Contains(p, "frame-ancestors 'none'") {
				t.Errorf("policy %q", p)
			}
		})
	}
}

// The server sends the token in a cookie. The text of the answer and later addresses do not contain the token.
func TestEnter(t *testing.T) {
	w := httptest.NewRecorder()
	testHandler(t).ServeHTTP(w, request("GET", "/?token="+testToken, func(r *http.Request) {
		r.Header.Del("Cookie")
		r.Header.Set("Sec-Fetch-Site", "cross-site") // the user clicked a link in a notebook
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
	}))
	cookies := w.Result().Cookies()
	if w.Code != 200 || len(cookies) != 1 || cookies[0].Value != testToken || !cookies[0].HttpOnly ||
		cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(w.Body.String(), testToken) {
		t.Errorf("%d, cookies %v: %s", w.Code, cookies, w.Body)
	}
	if a, b := newToken(), newToken(); a == b || len(a) != 32 {
		t.Error("tokens are not random")
	}
}

// A browser is started with a token that admits it once.
func TestEnterOnce(t *testing.T) {
	h := newHandler(testToken, 8642, recorded())
	enter := func(token string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("GET", "/?token="+token, func(r *http.Request) { r.Header.Del("Cookie") }))
		return w.Code
	}
	if code := enter(""); code != http.StatusForbidden {
		t.Errorf("no token: %d", code)
	}
	once := h.admitOnce()
	for i, want := range []int{http.StatusOK, http.StatusForbidden} {
		if code := enter(once); code != want {
			t.Errorf("time %d: %d, want %d", i+1, code, want)
		}
	}
	if code := enter(testToken); code != http.StatusOK {
		t.Errorf("the token itself: %d", code)
	}
}

// The served page has the same program as a page in a file, but no data.
func TestServedPage(t *testing.T) {
	text, err := servedPage()
	if err != nil || !strings.Contains(string(text), string(web.Script())) ||
		strings.Contains(string(text), `id="about"`) || !strings.Contains(string(text), "connect-src 'self'") {
		t.Errorf("%v: %.400s", err, text)
	}
	served, _, err := recorded().Served()
	if err != nil {
		t.Fatal(err)
	}
	var first, docs map[string]json.RawMessage
	if err := json.Unmarshal(served.First.Documents, &first); err != nil || first["runs"] == nil ||
		first["breakdown"] == nil || first["findings"] != nil {
		t.Errorf("%v: %d documents come first", err, len(first))
	}
	whole, err := served.Whole()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(whole.Documents, &docs); err != nil || docs["runs"] == nil || docs["findings"] == nil {
		t.Errorf("%v: %d documents", err, len(docs))
	}
	var about struct{ Devices []struct{ Detail string } }
	if err := json.Unmarshal(whole.About, &about); err != nil || len(about.Devices) != served.Devices() ||
		served.Devices() == 0 || about.Devices[0].Detail != page.DetailAll {
		t.Errorf("%v: %+v of %d devices", err, about, served.Devices())
	}
}

// fuzzed returns a random request. The request is made of pieces of real requests and of random text.
func fuzzed(r *rand.Rand) *http.Request {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	junk := func() string {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return string(b)
	}
	path := "/" + pick("", "data/about", "data/documents", "data/device/0", "data/device/"+junk(), "live/runs",
		"live/run/x", "live/run/"+junk(), junk(), "../"+junk(), "data/device/"+fmt.Sprint(r.Int64N(1<<40)-5))
	query := pick("", "token="+testToken, "token="+junk(), fmt.Sprintf("from=%d&to=%d", r.Int64(), r.Int64()),
		"from="+junk(), "points="+fmt.Sprint(r.Int64()-9), junk())
	// A request from the network may differ from all requests that a client would send.
	req := httptest.NewRequest("GET", "http://127.0.0.1:8642/", nil)
	req.Method = pick("GET", "GET", "GET", "HEAD", "POST", "PUT", junk())
	req.URL.Path, req.URL.RawQuery = path, query
	req.Host = pick("127.0.0.1:8642", "localhost", "localhost:1", "[::1]:2", junk(), "evil.example", "127.0.0.1:"+junk())
	if r.IntN(3) > 0 {
		req.AddCookie(&http.Cookie{Name: "dpsight-8642", Value: testToken})
	} else {
		req.Header.Set("Cookie", junk())
	}
	if r.IntN(3) == 0 {
		req.Header.Set("Origin", pick("http://127.0.0.1:8642", "null", junk(), "http://"+junk()))
	}
	if r.IntN(3) == 0 {
		req.Header.Set("Sec-Fetch-Site", pick("none", "same-origin", "cross-site", junk()))
	}
	return req
}

// After 10,000 random requests, the server has not panicked, and no goroutine or open file is left.
func TestFuzzedRequests(t *testing.T) {
	h := testHandler(t)
	h.ServeHTTP(httptest.NewRecorder(), request("GET", "/data/device/0", nil))
	runtime.GC()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	r := rand.New(rand.NewPCG(30, 30))
	shown := 0
	for range 10_000 {
		w := httptest.NewRecorder()
		req := fuzzed(r)
		h.ServeHTTP(w, req)
		if w.Code >= 500 {
			t.Errorf("%s %q of %q: %d: %.200q", req.Method, req.URL, req.Host, w.Code, w.Body)
		}
		if w.Code == 200 {
			shown++
		}
	}
	if shown == 0 {
		t.Error("none was answered: the requests are all alike")
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, and %d before", n, goroutines)
	}
	if n := openFiles(t); n > files {
		t.Errorf("%d open files, and %d before", n, files)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("GET", "/data/device/0", "from=1&to=2", "127.0.0.1:8642", "", "")
	f.Add("GET", "/", "token="+testToken, "localhost", "http://localhost", "cross-site")
	f.Add("HEAD", "/live/run/../x", "", "[::1]:80", "null", "none")
	h := testHandler(f)
	f.Fuzz(func(t *testing.T, method, path, query, host, origin, site string) {
		req := httptest.NewRequest("GET", "http://127.0.0.1:8642/", nil)
		req.Method, req.URL.Path, req.URL.RawQuery, req.Host = method, path, query, host
		req.Header.Set("Origin", origin)
		req.Header.Set("Sec-Fetch-Site", site)
		req.AddCookie(&http.Cookie{Name: "dpsight-8642", Value: testToken})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code >= 500 {
			t.Errorf("%d: %.200q", w.Code, w.Body)
		}
	})
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files cannot be counted here")
	}
	return len(entries)
}

// A server listens only on 127.0.0.1, answers over a real connection, and ends on request.
func TestServe(t *testing.T) {
	if _, _, err := recorded().Served(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	s, err := Listen(0, recorded())
	if err != nil {
		t.Fatal(err)
	}
	if host, _, _ := net.SplitHostPort(s.listener.Addr().String()); host != "127.0.0.1" {
		t.Errorf("it listens on %s", s.listener.Addr())
	}
	if _, err := Listen(s.Port(), recorded()); err == nil || !strings.Contains(err.Error(), "serving on port") {
		t.Errorf("a port that is taken: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	answer, err := http.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	if answer.StatusCode != 200 || len(answer.Cookies()) != 1 {
		t.Errorf("%s with cookies %v", answer.Status, answer.Cookies())
	}
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", 64<<10))
	head := make([]byte, 64)
	n, _ := conn.Read(head)
	conn.Close()
	if !strings.Contains(string(head[:n]), " 431 ") {
		t.Errorf("a header without end: %q", head[:n])
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the server does not end")
	}
	http.DefaultClient.CloseIdleConnections()
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 100 {
			t.Fatalf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A name of a view must not lead out of the store, for example "../run".
func TestFoldersStayInside(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	outside := filepath.Join(dir, "run")
	for _, d := range []string{store, filepath.Join(outside, "spool")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f := NewFolders(store, []string{"../run"}, func(string) bool { return true })
	if running, _ := f.Look(); len(running) != 0 {
		t.Errorf("%q runs", running)
	}
}
