package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Options says how a view is served to a browser.
type Options struct {
	Port int  // 0 takes any free port
	Open bool // opens the page in a browser, if this machine has one
	Say  func(text string)
}

// Show serves a view until the context ends, and prints the page's address.
func Show(ctx context.Context, v *View, o Options) error {
	s, err := begin(v, o)
	if err != nil {
		return err
	}
	return s.Serve(ctx)
}

// Beside serves a view while the caller does something else. The caller ends the serving with stop.
func Beside(v *View, o Options) (stop func(), err error) {
	s, err := begin(v, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			o.Say("warning: the live page stopped: " + err.Error())
		}
	}, nil
}

func begin(v *View, o Options) (*Server, error) {
	if o.Port < 0 || o.Port > 65535 {
		return nil, schemas.WithHint(errors.New("a port is a number from 0 to 65535"),
			"leave --port out for a free port")
	}
	s, err := Listen(o.Port, v)
	if err != nil {
		return nil, err
	}
	o.Say("page at " + s.URL())
	if tunnel := s.tunnel(); tunnel != "" {
		o.Say("on your own machine, run " + tunnel + ", then open that address there")
	} else if o.Open {
		openBrowser(s.urlOnce())
	}
	return s, nil
}

// Check returns an error if a name names no run. The store may be empty, since the page later shows the runs that are
// recorded in it.
func (v *View) Check() error {
	_, err := v.source.SelectEach(v.names)
	if none := (*store.NoRunsError)(nil); errors.As(err, &none) {
		return nil
	}
	return err
}

// Look checks the names of a view. Look also begins to read the named runs, so that the first request is answered
// sooner.
func (v *View) Look() error {
	err := v.Check()
	if err == nil {
		go v.Served() // an error is returned to the first request
	}
	return err
}

// tunnel returns the ssh command that makes the server reachable from the user's machine. tunnel returns "" if no SSH
// session started this process.
func (s *Server) tunnel() string {
	if os.Getenv("SSH_CONNECTION") == "" {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		host = "HOST"
	}
	if u, err := user.Current(); err == nil {
		host = u.Username + "@" + host
	}
	return fmt.Sprintf("ssh -L %d:127.0.0.1:%d %s", s.Port(), s.Port(), host)
}

// openBrowser opens an address if the machine has a screen. openBrowser does not report a failure, since the user can
// open the printed address.
func openBrowser(url string) {
	var program string
	switch {
	case runtime.GOOS == "darwin":
		program = "open"
	case runtime.GOOS == "linux" && os.Getenv("DISPLAY")+os.Getenv("WAYLAND_DISPLAY") != "":
		program = "xdg-open"
	default:
		return
	}
	if cmd := exec.Command(program, url); cmd.Start() == nil {
		go cmd.Wait()
	}
}
