// Package identity says which run a figure is of: its name and badge, the facts that move its figures, and, beside
// other runs, the parameters or arguments of the command that tell it from them.
package identity
