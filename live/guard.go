package live

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/dpsight/dpsight/report/page"
)

// A guard lets a request through if the browser knows the server's token. A token is necessary, since every user and
// program of the machine can reach the server's port. Each web page in a browser on the machine can reach this port,
// too.
type guard struct {
	token  string
	cookie string // the name of the cookie
	next   http.Handler

	mu   sync.Mutex
	once string // a token that admits one browser
}

// admitOnce returns a token that admits one browser, once. dpsight passes it on the browser's command line, which other
// users of the machine can read.
func (g *guard) admitOnce() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.once = newToken()
	return g.once
}

// admits reports whether a token admits a browser. A token of admitOnce no longer does after this call.
func (g *guard) admits(token string) bool {
	if g.is(token) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.once != "" && subtle.ConstantTimeCompare([]byte(token), []byte(g.once)) == 1
	if known {
		g.once = ""
	}
	return known
}

// newToken returns 32 random hexadecimal digits.
func newToken() string {
	b := make([]byte, 16)
	rand.Read(b) // Read never fails
	return hex.EncodeToString(b)
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", page.Policy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this server answers only GET and HEAD", http.StatusMethodNotAllowed)
	case !localHost(r.Host):
		http.Error(w, "this server answers to 127.0.0.1 and localhost, not to "+printable(r.Host),
			http.StatusMisdirectedRequest)
	case !sameOrigin(r):
		http.Error(w, "this server refuses requests from other pages", http.StatusForbidden)
	case r.URL.Path == "/" && r.URL.Query().Has("token"):
		g.enter(w, r)
	case !g.knows(r):
		http.Error(w, "the token is missing: open the whole address that dpsight view printed", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// enter moves the token from the page's address into a cookie. An address in the browser is visible to others, and
// links would pass it on.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if !g.admits(r.URL.Query().Get("token")) {
		http.Error(w, "the token is wrong: open the address that this dpsight view printed", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	// The answer is a page that leads on, and no redirection. After a redirection from another site, the browser would
	// not send the cookie.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.Write([]byte(`<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>dpsight` +
		`</title><p><a href="/">dpsight</a></p>`))
}

func (g *guard) knows(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && g.is(c.Value)
}

func (g *guard) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// localHost reports whether a Host header has a name that always means this machine. A page at evil.example sends
// evil.example as Host, even if a DNS server says that evil.example is 127.0.0.1.
func localHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	switch name {
	case "127.0.0.1", "localhost", "::1", "[::1]":
		return true
	}
	return false
}

// sameOrigin reports whether a request comes from this server's own page, or from an address that the user typed or
// clicked.
func sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || u.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	// A link on another site, for example in a notebook, may lead to the page.
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}
