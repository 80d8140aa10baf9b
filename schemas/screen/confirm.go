package screen

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// Confirm asks a question on a terminal, and reports whether the user answers yes. asked is false if in is no terminal.
func Confirm(in *os.File, out io.Writer, question string) (yes, asked bool) {
	if !term.IsTerminal(int(in.Fd())) {
		return false, false
	}
	fmt.Fprint(out, question+"? [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))), true
}
