package experiments

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestResolveIsComplete(t *testing.T) {
	got, err := Resolve(map[string]string{"method": "DPGhostClippingTrainer", "preset": "seed", "num-layers": "2", "warmup_iter": "0"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"method": "ghost", "clipping": "flat", "noise_multiplier": 1.0, "max_grad_norm": 1.0,
		"model": "transformer", "preset": "seed", "vocab_size": int64(32000), "hidden_dim": int64(2048),
		"num_layers": int64(2), "num_heads": int64(16), "seq_len": int64(16384),
		"batch_size": int64(1), "physical_batch_size": int64(1), "num_iter": int64(3), "warmup_iter": int64(0),
		"optimizer": "adamw", "learning_rate": 0.0001, "precision": "fp32", "checkpointing": false,
		"zero_grad": "default", "seed": int64(0),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestResolveDropsWhatDoesNotApply(t *testing.T) {
	given := map[string]string{"method": "standard", "model": "mlp", "seq_len": "128", "noise_multiplier": "0.5", "batch_size": "8"}
	got, err := Resolve(given)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"seq_len", "vocab_size", "noise_multiplier", "max_grad_norm", "clipping"} {
		if value, ok := got[name]; ok {
			t.Errorf("%s is %v", name, value)
		}
	}
	if got["mlp_dims"] != "5120,2560,1280" || got["physical_batch_size"] != int64(8) {
		t.Errorf("got %v", got)
	}
	if ignored := Ignored(given, got); !slices.Equal(ignored, []string{"noise_multiplier", "seq_len"}) {
		t.Errorf("ignored %v", ignored)
	}
}

func TestMethodAliases(t *testing.T) {
	for alias, want := range map[string]string{
		"vanilla": "vanilla", "StandardTrainer": "vanilla", "no-dp": "vanilla", "STANDARD": "vanilla",
		"DPSGDTrainer": "dpsgd", "hooks": "dpsgd", "Ghost": "ghost",
	} {
		got, err := Resolve(map[string]string{"method": alias})
		if err != nil || got["method"] != want {
			t.Errorf("%s: %v, %v", alias, got["method"], err)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"", "no method: give --method vanilla, dpsgd, ghost"},
		{"method=bookkeeping", "method bk is not built in yet; known now: vanilla, dpsgd, ghost"},
		{"method=functorch", "method functorch is not built in yet; known now: vanilla, dpsgd, ghost"},
		{"method=ghots", `unknown method "ghots"; did you mean ghost?`},
		{"method=xyz", `unknown method "xyz"; known: vanilla, dpsgd, ghost`},
		{"method=ghost preset=smal", `unknown preset "smal"; did you mean small?`},
		{"method=ghost preset=huge", `unknown preset "huge"; known: tiny, small, medium, 1b, seed`},
		{"method=ghost model=mlp preset=seed", "preset seed has no sizes for model mlp; known: tiny, small"},
		{"method=ghost batchsize=4", `unknown option "batchsize"; did you mean batch_size?`},
		{"method=ghost batch_size=4 batch-size=4", "option batch_size is given twice"},
		{"method=ghost batch_size=", "batch_size is empty"},
		{"method=ghost batch_size=4.5", `batch_size must be a whole number, not "4.5"`},
		{"method=ghost batch_size=99999999999999999999", `batch_size must be a whole number, not "99999999999999999999"`},
		{"method=ghost batch_size=0", "batch_size must be at least 1, not 0"},
		{"method=ghost max_grad_norm=0", "max_grad_norm must be more than 0, not 0"},
		{"method=ghost max_grad_norm=inf", `max_grad_norm must be a number, not "inf"`},
		{"method=vanilla noise_multiplier=-1", "noise_multiplier must be at least 0, not -1"},
		{"method=ghost precision=fp16", `unknown precision "fp16"; known: fp32, bf16`},
		{"method=ghost optimizer=lion", `unknown optimizer "lion"; known: sgd, adam, adamw`},
		{"method=ghost checkpointing=maybe", `checkpointing must be true or false, not "maybe"`},
		{"method=ghost model=mlp mlp_dims=5120", `mlp_dims must look like 5120,2560,1280, not "5120"`},
		{"method=ghost hidden_dim=100", "hidden_dim 100 is not a multiple of num_heads 8"},
		{"method=ghost physical_batch_size=3", "batch_size 4 is not a multiple of physical_batch_size 3"},
		{"method=ghost physical_batch_size=8", "batch_size 4 is not a multiple of physical_batch_size 8"},
		{"method=ghost clipping=per_layer", "clipping per_layer is not built in yet; known now: flat"},
		{"method=dpsgd checkpointing=yes", "checkpointing is not supported with method dpsgd: recomputation would run Opacus' hooks twice; use vanilla, or a smaller physical_batch_size"},
		{"method=vanilla model=mlp checkpointing=true", "checkpointing is not supported with model mlp: it has no blocks to recompute; use model transformer"},
	} {
		params, err := Resolve(pairs(c.given))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v, %v\nwant %s", c.given, params, err, c.want)
		}
	}
}

// What Resolve returns is fit to be resolved again: a run can be repeated from its manifest.
func TestResolveIsIdempotent(t *testing.T) {
	first, err := Resolve(pairs("method=hooks preset=tiny checkpointing=false learning_rate=3e-5 seed=9223372036854775807"))
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{}
	for name, value := range first {
		given[name] = text(value)
	}
	again, err := Resolve(given)
	if err != nil || !maps.Equal(again, first) {
		t.Errorf("got %v, %v\nwant %v", again, err, first)
	}
}

func pairs(text string) map[string]string {
	given := map[string]string{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		given[name] = value
	}
	return given
}
