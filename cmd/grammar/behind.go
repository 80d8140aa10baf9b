package grammar

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Behind names the options of dpsight that the user put behind the script, so that the script gets them. Behind returns
// "" if there is no such option, or if the script cannot be read: the options may then belong to the script.
func Behind(line *kong.Context) string {
	command := commandOf(line)
	at := slices.IndexFunc(command, func(word string) bool { return strings.HasSuffix(word, ".py") })
	if at < 0 {
		return ""
	}
	text, err := os.ReadFile(command[at])
	if err != nil {
		return ""
	}
	var given []string
	for i, word := range command[at+1:] {
		name, _, joined := strings.Cut(word, "=")
		flag := flagOf(line.Selected(), name)
		if flag == nil || takes(string(text), name) {
			continue
		}
		given = append(given, word)
		if value := at + 2 + i; !joined && !flag.IsBool() && value < len(command) {
			given = append(given, command[value])
		}
	}
	if len(given) == 0 {
		return ""
	}
	return fmt.Sprintf("%s went to %s, like all that stands behind a script; dpsight's own options go before %s",
		strings.Join(given, " "), filepath.Base(command[at]), filepath.Base(command[0]))
}

// takes reports whether a script seems to have an option. argparse and click name an option in the script, and other
// scripts have it as a key, or as a typed parameter or field.
func takes(script, option string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(option, "--"), "-", "[-_]")
	return regexp.MustCompile(`(--|["'])` + name + `\b|\b` + name + `\s*:`).MatchString(script)
}

// commandOf returns the words of the user's command, or nil if the line has no user's command.
func commandOf(line *kong.Context) []string {
	node := line.Selected()
	if node == nil {
		return nil
	}
	for _, p := range node.Positional {
		if words, ok := p.Target.Interface().([]string); ok && p.Name == "command" {
			return words
		}
	}
	return nil
}

// flagOf returns the option of a command that a word names. flagOf returns nil for a word that is no option, and for
// options of the built-in experiments: many scripts have options with the same names, such as --batch-size.
func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, flags := range node.AllFlags(true) {
		for _, f := range flags {
			if "--"+f.Name == word && f.Name != "help" && (f.Group == nil || !strings.HasPrefix(f.Group.Key, builtin)) {
				return f
			}
		}
	}
	return nil
}
