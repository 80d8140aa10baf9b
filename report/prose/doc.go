// Package prose puts figures into words.
package prose
