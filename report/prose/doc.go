// Package prose formats figures for use in sentences.
package prose
