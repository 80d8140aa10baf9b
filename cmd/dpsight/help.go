package main

import (
	"embed"
	"strings"

	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/report"
)

//go:embed help
var helpTexts embed.FS

// help returns the text above a command's options: a file of the folder help. In a help file, {suites} and {presets}
// stand for the built-in ones. options.txt has the texts of options that are too long for a tag.
func help(command string) string {
	text, err := helpTexts.ReadFile("help/" + command + ".txt")
	if err != nil {
		panic(err) // a file that is not in the program
	}
	return strings.NewReplacer("{suites}", strings.Join(suite.Names(), ", "), "{presets}", experiments.PresetList(),
		"{findings}", report.FindingList()).Replace(strings.TrimSuffix(string(text), "\n"))
}
