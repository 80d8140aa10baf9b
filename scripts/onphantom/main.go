// Onphantom runs a Python script on the phantom GPU, without dpsight's agent:
//
//	go run ./scripts/onphantom [-memory BYTES] PYTHON [ARGUMENT…]
//
// The agent is left out since it records torch's memory history, which would disturb scripts that test this history
// themselves. The environment variable PHANTOM_MODULE names the folder with the module that follows small values. A
// script may install that module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/dpsight/dpsight/collect/phantom"
)

func main() {
	memory := flag.Int64("memory", 0, "bytes that the device can hand out (0: the profile's)")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: onphantom [-memory BYTES] PYTHON [ARGUMENT…]")
		os.Exit(2)
	}
	code, err := run(*memory, flag.Arg(0), flag.Args()[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "onphantom:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(memory int64, python string, arguments []string) (int, error) {
	library, err := phantom.Build(context.Background(), phantom.Options{Python: python})
	if err != nil {
		return 0, err
	}
	library.MemoryBytes = memory
	module, err := os.MkdirTemp("", "onphantom-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(module) }()
	if _, err := phantom.Unpack(module); err != nil {
		return 0, err
	}
	command := exec.Command(python, arguments...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(library.Env(os.Environ()), "PHANTOM_MODULE="+module)
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
