// Package units parses and formats quantities, such as sizes, in the form that people write.
package units

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// ParseBytes parses a size: "1MiB", "512 KiB", "4096". The unit may have upper or lower case.
func ParseBytes(s string) (int64, error) {
	number, shift := strings.TrimSpace(s), uint(0)
	for _, u := range []struct {
		name  string
		shift uint
	}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}} {
		if n := len(number) - len(u.name); n >= 0 && strings.EqualFold(number[n:], u.name) {
			number, shift = strings.TrimSpace(number[:n]), u.shift
			break
		}
	}
	r, ok := ParseDecimal(number)
	if !ok {
		return 0, fmt.Errorf("size %q is not a number of B, KiB, MiB or GiB", s)
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), shift)))
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if !n.IsInt64() || n.Int64() >= 1<<53 {
		return 0, fmt.Errorf("size %q is larger than any memory", s)
	}
	return n.Int64(), nil
}

// FormatBytes formats a size so that [ParseBytes] can parse it, in MiB if it is a whole number of MiB.
func FormatBytes(n int64) string {
	if n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10)
}

// ParseDecimal parses a decimal number such as "1.05" exactly. ParseDecimal refuses fractions, exponents and signs,
// which big.Rat would also parse.
func ParseDecimal(s string) (*big.Rat, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 20 || strings.Trim(s, "0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}
