package main

import (
	"fmt"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
)

// resolved completes the options of a built-in experiment, and prints a note for each option without effect on it.
func resolved(console *collect.Console, given map[string]string) (map[string]any, error) {
	params, err := experiments.ResolveOne(given)
	if err != nil {
		return nil, err
	}
	for _, name := range experiments.Ignored(given, params) {
		console.Println(fmt.Sprintf("dpsight: note: %s has no effect on this experiment", name))
	}
	return params, nil
}
