// Package identity says which run a figure belongs to: its name and badge, the facts that change its figures and,
// beside other runs, the parameters or command arguments that distinguish it.
package identity
