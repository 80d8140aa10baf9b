// Package experiments holds the built-in DP-SGD experiments: one table of
// their options, which the command line, the resolver below and the Python
// program read alike, and the Python program itself.
//
// The table is options.json. The table is data rather than Go or Python code so that help, validation and the
// parameters in a run's manifest cannot drift apart.
package experiments
