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

// toldParams are the parameters that hold the user's settings for the machine, such as the number of GPUs. A suite's
// key covers only the suite's file and not these settings.
var toldParams = []string{"world_size", "ranks", "gpus_per_node", "gpu_memory"}

// ToldText returns the user's settings for the machine, such as the number of GPUs, as one string; "" if none was set.
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

// TextOf returns a parameter's value as text. A whole number has no decimal point, even if it came from JSON, which has
// only one number type.
func TextOf(v any) string {
	const exact = 1 << 53 // whole numbers below it are printed as in JSON
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

// Known returns a pointer to n, or nil if n is 0, which stands for an unknown value in tables.
func Known(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
