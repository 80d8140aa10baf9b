package identity

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// toldParams are the parameters with the user's settings for the machine. A suite's key covers only its file, not
// the machine.
var toldParams = []string{"world_size", "ranks", "gpus_per_node", "gpu_memory"}

// ToldText returns [toldParams] and their values as one string; "" if none was set.
func ToldText(params map[string]any) string {
	told := map[string]any{}
	for _, k := range toldParams {
		if v, ok := params[k]; ok {
			told[k] = v
		}
	}
	return ParamsText(told)
}

// ParamsText returns parameters as one string; equal parameters give equal strings.
func ParamsText(params map[string]any) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(params)) {
		b.WriteString(strconv.Quote(k))
		b.WriteByte('=')
		b.WriteString(TextOf(params[k]))
		b.WriteByte(0)
	}
	return b.String()
}

// TextOf prints a parameter's value: a whole number prints as one, even if it came from JSON, which has only one
// number type.
func TextOf(v any) string {
	const exact = 1 << 53 // whole numbers below it print the same as JSON does
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if whole := int64(v); float64(whole) == v && -exact < whole && whole < exact && (v != 0 || !math.Signbit(v)) {
			return strconv.FormatInt(whole, 10)
		}
	}
	if b, err := json.Marshal(v); err == nil {
		return string(b)
	}
	return fmt.Sprint(v)
}

func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Known returns n, or nil if it is 0: a table leaves out the null value.
func Known(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
