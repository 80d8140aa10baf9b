// Package source finds lines in the source of a script that bind a name, append to a list, or catch an exception.
// Package source matches Python line by line. Package source finds nothing in code whose statements span lines, and
// returns nothing if too many lines match.
package source

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/schemas"
)

// Files has the lines of each of a script's files, by file name.
type Files map[string][]string

const most = 3 // the largest number of lines that are named: with more, it is unclear which line is meant

// Lines returns the lines with a statement that matches, or none if more than three match.
func (f Files) Lines(want *regexp.Regexp) []schemas.Line {
	return f.lines(func(_, statement string) bool { return want.MatchString(statement) })
}

// lines returns the lines with a statement that want accepts. want also gets the name of the function around the
// statement, or "" outside of functions.
func (f Files) lines(want func(function, statement string) bool) (out []schemas.Line) {
	for _, file := range slices.Sorted(maps.Keys(f)) {
		function, depth := "", 0
		for i, text := range f[file] {
			code, in := strings.TrimSpace(text), indentation(text)
			if code == "" || strings.HasPrefix(code, "#") {
				continue
			}
			if in <= depth {
				function, depth = "", 0
			}
			if m := defines.FindStringSubmatch(code); m != nil {
				function, depth = m[1], in
				continue
			}
			if slices.ContainsFunc(strings.Split(code, ";"), func(s string) bool {
				return want(function, strings.TrimSpace(s))
			}) {
				out = append(out, schemas.Line{File: file, Number: int64(i + 1), Function: function, Text: code})
			}
		}
	}
	if len(out) > most { // only indented lines, since code that runs repeatedly is indented
		out = slices.DeleteFunc(out, func(l schemas.Line) bool {
			return indentation(f[l.File][l.Number-1]) == 0
		})
	}
	if len(out) > most {
		return nil
	}
	return out
}

var defines = regexp.MustCompile(`^(?:async\s+)?def\s+(\w+)`)

func indentation(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// Bindings returns the lines that assign the variable with which a holder's path begins, or that add something to it if
// it is a list or a dictionary.
func (f Files) Bindings(holder string) []schemas.Line {
	words := strings.Fields(grouping.HolderRoot(holder))
	if len(words) == 0 || words[0] == "C++" || words[0] == "cycle" {
		return nil
	}
	name := words[0]
	if slices.Contains([]string{"global", "local", "class"}, name) && len(words) > 1 {
		name = words[1]
	}
	name, _, inside := strings.Cut(name, "[")
	pattern := regexp.QuoteMeta(name)
	if i := strings.LastIndexByte(name, '.'); i >= 0 { // inside the class the attribute belongs to self
		pattern = `[\w.]+` + regexp.QuoteMeta(name[i:])
	} else if len(words) == 1 { // a tag's name may be an attribute of the model
		pattern = `(?:[\w.]+\.)?` + pattern
	}
	function := ""
	if words[0] == "local" && len(words) > 3 && !strings.Contains(name, ".") { // an attribute may be filled anywhere
		function = strings.TrimSuffix(words[3], "()")
		function = function[strings.LastIndexByte(function, '.')+1:]
	}
	of := func(want *regexp.Regexp) []schemas.Line {
		return f.lines(func(within, statement string) bool {
			m := want.FindStringSubmatch(statement)
			return m != nil && (function == "" || function == within) && !hollow(m[len(m)-1])
		})
	}
	forms := []string{`^` + pattern + adds, `^(?:[\w.*]+\s*,\s*)*` + pattern + binds}
	if !inside { // a variable's name, or a tag's, names a list without the entry
		slices.Reverse(forms)
	}
	for _, form := range forms {
		if out := of(regexp.MustCompile(form)); len(out) > 0 {
			return out
		}
	}
	return nil
}

const (
	adds  = `(?:\[.*\])*\s*(?:\.(?:append|appendleft|add|extend|insert|update|setdefault|put)\(|\[.*\]\s*=|\+=)(.*)`
	binds = `(?:\s*,\s*[\w.*]+)*\s*(?::[^=]*)?(?:[-+*/@|&]|//)?=([^=].*)`
)

// hollow reports whether an expression consists only of empty containers and numbers, so that its value holds no
// tensor.
func hollow(expression string) bool {
	expression = key.ReplaceAllString(empty.ReplaceAllString(expression, ""), "")
	for _, name := range word.FindAllString(expression, -1) {
		if !slices.Contains(tensorless, name) {
			return false
		}
	}
	return true
}

var (
	empty      = regexp.MustCompile(`"[^"]*"|'[^']*'|#.*|\bfor\b.*`) // what follows for in a comprehension only counts
	key        = regexp.MustCompile(`\w+\s*:`)
	word       = regexp.MustCompile(`[A-Za-z_]\w*`)
	tensorless = []string{"None", "True", "False", "list", "dict", "set", "tuple", "deque", "defaultdict", "OrderedDict",
		"Counter", "collections", "maxlen", "lambda", "float", "int"}
)

// Caught returns the line of the except clause that caught an exception. In a holder's path, an exception is named by
// the first line of its traceback: the call in the script that raised it. Caught returns nil if the source does not
// show the clause.
func (f Files) Caught(holder string) *schemas.Line {
	m := called.FindStringSubmatch(holder)
	if m == nil {
		return nil
	}
	number, _ := strconv.Atoi(m[2])
	for _, file := range slices.Sorted(maps.Keys(f)) {
		texts := f[file]
		if path.Base(file) != m[1] || number < 1 || number > len(texts) {
			continue
		}
		if i := clause(texts, number); i >= 0 {
			return &schemas.Line{File: file, Number: int64(i + 1), Text: strings.TrimSpace(texts[i])}
		}
	}
	return nil
}

// clause returns the index of the except clause of the try around a line, or -1 if there is none or several.
func clause(texts []string, number int) int {
	depth, found := indentation(texts[number-1]), -1
	for i := number; i < len(texts); i++ {
		code, in := strings.TrimSpace(texts[i]), indentation(texts[i])
		switch {
		case code == "" || strings.HasPrefix(code, "#") || in > depth || in == depth && found < 0:
		case strings.HasPrefix(code, "except") && found < 0:
			found, depth = i, in
		case strings.HasPrefix(code, "except") && in == depth:
			return -1
		case found >= 0:
			return found
		default:
			depth = in // the call lay deeper inside the try block
		}
	}
	return found
}

var called = regexp.MustCompile(`exception\s+caught\s+at\s+(\S+):(\d+)`)

// Assigned returns the variable that a statement binds: "ready" for "ready = {…}". Assigned returns "" if the statement
// binds none, or several.
func Assigned(statement string) string {
	if m := assigns.FindStringSubmatch(statement); m != nil {
		return m[1]
	}
	return ""
}

var assigns = regexp.MustCompile(`^([A-Za-z_][\w.]*)\s*=[^=]`)
