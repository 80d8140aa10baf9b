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

// help returns the text above a command's options, which is a file in the folder help. In a help file, {suites} and
// {presets} stand for the names of the built-in suites and presets. options.txt has the texts of options that are too
// long for a tag.
func help(command string) string {
	text, err := helpTexts.ReadFile("help/" + command + ".txt")
	if err != nil {
		panic(err) // the program does not contain the file
	}
	return strings.NewReplacer("{suites}", strings.Join(suite.Names(), ", "), "{presets}", experiments.PresetList(),
		"{findings}", report.FindingList()).Replace(strings.TrimSuffix(string(text), "\n"))
}
