// Package gate checks runs against a baseline that was written before: what grew by more than a threshold fails.
package gate
