package identity

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas/units"
)

// Distinguish changes the labels of a document's runs that share a name: it adds to a label what distinguishes the
// run's experiment. Repeats still share a label, since each has a separate table, and JSON documents have the run's id.
func Distinguish[R any](runs []R, identity func(*R) *Identity) {
	ids, labels := make([]Identity, len(runs)), make([]string, len(runs))
	for i := range runs {
		ids[i] = *identity(&runs[i])
		labels[i] = ids[i].Title()
	}
	experimentsApart(ids, labels)
	for i := range runs {
		identity(&runs[i]).label = labels[i]
	}
}

// sharing calls f with every group of runs that share a label.
func sharing(labels []string, f func(group []int)) {
	groups := map[string][]int{}
	for i := range labels {
		groups[labels[i]] = append(groups[labels[i]], i)
	}
	for _, g := range groups {
		if len(g) > 1 {
			f(g)
		}
	}
}

// experimentsApart adds to equal labels of different experiments the parameters that differ, then, for labels that are
// still equal, the arguments of their commands, then the parts of their origins.
func experimentsApart(ids []Identity, labels []string) {
	TellApart(ids, labels, func(int, string) {})
}

// TellApart is [experimentsApart], and also calls told with each text that it adds to a label.
func TellApart(ids []Identity, labels []string, told func(i int, text string)) {
	tell := func(i int, text string) {
		if text != "" {
			labels[i] += " (" + text + ")"
			told(i, text)
		}
	}
	sharing(labels, func(group []int) {
		keys := TellingParams(ids, group)
		if len(keys) == 0 {
			return
		}
		words := map[uintptr]string{}
		for _, i := range group {
			at := paramsAt(&ids[i])
			if _, ok := words[at]; !ok {
				words[at] = ParamWords(&ids[i], keys)
			}
			tell(i, words[at])
		}
	})
	sharing(labels, func(group []int) {
		for k, text := range TellingArguments(ids, group) {
			tell(group[k], text)
		}
	})
	sharing(labels, func(group []int) {
		texts := TellingOrigins(ids, [][]int{group})
		for _, i := range group {
			tell(i, texts[i])
		}
	})
}

// paramsAt returns the address of a run's parameters in memory. Repeats that were read from an index share one address.
func paramsAt(id *Identity) uintptr { return reflect.ValueOf(id.Params).Pointer() }

// Labels returns the name under which tables and figures show each run. A label is the run's name. If several runs
// share a name, Labels adds the parameters that distinguish them, or else the arguments of their commands. If runs
// still share a label, badge and status, Labels adds the start time, or else the id. The start time is a last resort,
// since it does not describe the run.
func Labels(ids []Identity, started []time.Time) []string {
	labels := make([]string, len(ids))
	for i := range ids {
		labels[i] = ids[i].Title()
	}
	experimentsApart(ids, labels)
	badged := make([]string, len(labels)) // the columns beside a label also distinguish runs
	for i := range ids {
		badged[i] = labels[i] + "\x00" + ids[i].kind() + "\x00" + ids[i].Status
	}
	sharing(badged, func(group []int) {
		times := map[string]int{}
		at := func(i int) string {
			if i >= len(started) || started[i].IsZero() {
				return ""
			}
			return started[i].UTC().Format("2006-01-02 15:04:05")
		}
		for _, i := range group {
			times[at(i)]++
		}
		for _, i := range group {
			if t := at(i); t != "" && times[t] == 1 {
				labels[i] += " " + t
			} else {
				labels[i] += " " + ids[i].RunID
			}
		}
	})
	return labels
}

// TellingParams returns the parameters that differ within the group and do not follow from parameters earlier in the
// list. For example, it leaves out a physical batch size that equals the batch size in all runs.
func TellingParams(ids []Identity, group []int) []string {
	seen := map[uintptr]bool{}
	var some []int // the first runs that share their parameters
	for _, i := range group {
		if at := paramsAt(&ids[i]); !seen[at] {
			seen[at] = true
			some = append(some, i)
		}
	}
	group = some
	var keys []string
	for _, i := range group {
		for k := range ids[i].Params {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		place := func(k string) int {
			switch {
			case slices.Contains(AxisOrder, k):
				return slices.Index(AxisOrder, k)
			case slices.Contains(AxisLast, k):
				return len(AxisOrder) + 1
			}
			return len(AxisOrder)
		}
		if c := place(a) - place(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	var chosen []string
	for _, k := range keys {
		values := map[string]string{}
		for _, i := range group {
			id := &ids[i]
			so, value := ParamWords(id, chosen), ParamWords(id, []string{k})
			if old, ok := values[so]; ok && old != value {
				chosen = append(chosen, k)
				break
			}
			values[so] = value
		}
	}
	return chosen
}

// shownText formats a parameter's value for a reader: the memory of a GPU as an option would give it.
func shownText(key string, v any) string {
	text := TextOf(v)
	if bytes, err := strconv.ParseInt(text, 10, 64); key == "gpu_memory" && err == nil {
		return units.FormatBytes(bytes)
	}
	return text
}

// ParamWords returns the run's values of parameters: "batch_size=16, model=mlp". Missing parameters are left out.
func ParamWords(id *Identity, keys []string) string {
	var words []string
	for _, k := range keys {
		if v, ok := id.Params[k]; ok && v != nil {
			words = append(words, k+"="+shownText(k, v))
		}
	}
	return strings.Join(words, ", ")
}

// AxisOrder lists the parameters from which rows and columns are chosen first. After them come the source, the other
// parameters, the run's length, and the facts of its environment.
var AxisOrder = []string{"method", "clipping", "model", "preset", "batch_size", "physical_batch_size", "seq_len",
	"precision"}

var AxisLast = []string{"num_iter", "warmup_iter", "seed", "bare"}
