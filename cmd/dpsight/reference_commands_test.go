package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/cmd/grammar"
)

// commandsPage returns the reference's page of every command and every option, which it takes from the grammar of
// dpsight's command line.
func commandsPage(t *testing.T) string {
	program := programModel(t)
	var m markdown
	m.line("# Commands\n")
	m.line("A command's own help, `dpsight COMMAND --help`, says the same. Results go to standard output, and all else " +
		"goes to standard error. An analysis may be named without `analyze`: `dpsight breakdown` is " +
		"`dpsight analyze breakdown`.\n")
	commands := commandsOf(program, program.Name)
	var rows [][]string
	for _, c := range commands {
		rows = append(rows, []string{"[" + code(c.name) + "](#" + anchorOf(c.name) + ")", prose(c.node.Help)})
	}
	m.table([]string{"Command", "What it does"}, rows)
	m.line("## Exit codes\n")
	rows = nil
	for _, e := range grammar.ExitCodes {
		rows = append(rows, []string{code(e.Code), prose(e.Means)})
	}
	m.table([]string{"Code", "Meaning"}, rows)
	m.line("## Options of all commands\n")
	optionTable(&m, program.Flags)
	shared := sharedGroups(commands)
	for _, c := range commands {
		m.line("## ", c.name, "\n")
		m.line(prose(c.node.Help), "\n")
		m.line("```\n", c.usage(), "\n```\n")
		if len(c.node.Aliases) > 0 {
			m.line("Also called ", code(strings.Join(c.node.Aliases, ", ")), ".\n")
		}
		helpText(&m, c.node.Detail)
		if len(c.node.Positional) > 0 {
			rows = nil
			for _, p := range c.node.Positional {
				rows = append(rows, []string{code(p.Summary()), prose(p.Help)})
			}
			m.table([]string{"Argument", "Meaning"}, rows)
		}
		for _, g := range groupsOf(c.node) {
			switch {
			case shared[g.title]:
				m.line("It takes the options of [", g.title, "](#", anchorOf(g.title), ").\n")
				continue
			case g.title != "":
				m.line("**", g.title, "**\n")
			}
			optionTable(&m, g.flags)
		}
	}
	told := map[string]bool{}
	for _, c := range commands {
		for _, g := range groupsOf(c.node) {
			if shared[g.title] && !told[g.title] {
				told[g.title] = true
				m.line("## ", g.title, "\n")
				optionTable(&m, g.flags)
			}
		}
	}
	return strings.TrimSuffix(m.String(), "\n")
}

// programModel returns kong's model of dpsight's command line.
func programModel(t *testing.T) *kong.Node {
	t.Helper()
	var c cli
	parser, err := newParser(&c, t.Output(), t.Output(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Node
}

// A command is a command without subcommands, with its whole name such as "dpsight analyze cost".
type command struct {
	name string
	node *kong.Node
}

// commandsOf returns the commands below a node that have no subcommands. commandsOf leaves out hidden commands, such as
// short forms.
func commandsOf(n *kong.Node, name string) (out []command) {
	for _, child := range n.Children {
		name := name + " " + child.Name
		switch {
		case child.Hidden:
		case len(child.Children) > 0:
			out = append(out, commandsOf(child, name)...)
		default:
			out = append(out, command{name, child})
		}
	}
	return out
}

// usage returns the command's usage line: its name, its arguments and [OPTIONS].
func (c command) usage() string {
	out := c.name
	for _, p := range c.node.Positional {
		out += " " + p.Summary()
	}
	return out + " [OPTIONS]"
}

// helpText adds the text that a command's help shows above the options. Indented lines become blocks of code.
func helpText(m *markdown, text string) {
	inCode := false
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			m.line(prose(strings.Join(paragraph, " ")), "\n")
		}
		paragraph = nil
	}
	fence := func(open bool) {
		if inCode != open {
			end()
			if m.WriteString("```\n"); inCode {
				m.line()
			}
			inCode = open
		}
	}
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimRight(line, "\n")
		rest, indented := strings.CutPrefix(line, "  ")
		switch {
		case line == "":
			end()
			fence(false)
		case indented && (inCode || len(paragraph) == 0 || strings.HasSuffix(paragraph[len(paragraph)-1], ":")):
			fence(true)
			m.line(rest)
		default:
			fence(false)
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	end()
	fence(false)
}

// A flagGroup is a title in a command's help, with the options that the help shows below it.
type flagGroup struct {
	title string
	flags []*kong.Flag
}

// groupsOf returns a command's options by title, and first the options without a title.
func groupsOf(n *kong.Node) []flagGroup {
	groups := []flagGroup{{}}
	for _, flag := range n.Flags {
		title := ""
		if flag.Group != nil {
			title = flag.Group.Title
		}
		at := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
		if at < 0 {
			at = len(groups)
			groups = append(groups, flagGroup{title: title})
		}
		groups[at].flags = append(groups[at].flags, flag)
	}
	return groups
}

// sharedGroups returns the titles of options that the help of several commands has.
func sharedGroups(commands []command) map[string]bool {
	seen, shared := map[string]bool{}, map[string]bool{}
	for _, c := range commands {
		for _, g := range groupsOf(c.node) {
			shared[g.title] = g.title != "" && seen[g.title]
			seen[g.title] = true
		}
	}
	return shared
}

func optionTable(m *markdown, flags []*kong.Flag) {
	var rows [][]string
	for _, flag := range flags {
		if flag.Name != "help" && !flag.Hidden {
			rows = append(rows, []string{flagCell(flag), prose(flag.Help), code(flag.Default),
				code(strings.Join(flag.Envs, ", "))})
		}
	}
	if len(rows) > 0 {
		m.table([]string{"Option", "Meaning", "Default", "Environment"}, rows)
	}
}

// flagCell returns an option as a user writes it, such as "-o, --out DIR", for a cell of a table.
func flagCell(flag *kong.Flag) string {
	name := "--" + flag.Name
	if flag.Tag.Negatable != "" {
		name = "--[no-]" + flag.Name
	}
	if !flag.IsBool() {
		name += " " + flag.FormatPlaceHolder()
	}
	if flag.Short != 0 {
		name = "-" + string(flag.Short) + ", " + name
	}
	return code(name)
}

// anchorOf returns the anchor that GitHub and the documentation's site give to a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading, ":", "")), " ", "-")
}
