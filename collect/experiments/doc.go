// Package experiments has the built-in DP-SGD experiments: the Python program that trains, and a table of its options,
// which the command line, [Resolve] and the program read.
//
// The table is options.json: data rather than Go or Python code, so that help, validation and the parameters in a run's
// manifest always agree.
package experiments
