package experiments

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestResolveIsComplete(t *testing.T) {
	got, err := Resolve(map[string]string{"method": "DPGhostClippingTrainer", "preset": "seed", "num-layers": "2",
		"warmup_iter": "0"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"method": "ghost", "clipping": "flat", "noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson": false,
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
	given := map[string]string{"method": "standard", "model": "mlp", "seq_len": "128", "noise_multiplier": "0.5",
		"batch_size": "8"}
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
		"DPSGDTrainer": "dpsgd", "hooks": "dpsgd", "functorch": "dpsgd", "ew": "dpsgd", "Ghost": "ghost",
		"DPFastGradientClippingTrainer": "fgc", "naive": "loop", "flash_clip": "flash", "bookkeeping": "bk",
		"ghost_bk": "bk", "flash-clip-bookkeeping": "flash_bk", "flash_clip_bk": "flash_bk", "norm_only": "norm_only",
	} {
		got, err := Resolve(map[string]string{"method": alias})
		if err != nil || got["method"] != want {
			t.Errorf("%s: %v, %v", alias, got["method"], err)
		}
	}
}

const allMethods = "vanilla, loop, dpsgd, fgc, ghost, mixed_ghost, flash, bk, flash_bk, norm_only"

func TestResolveRefuses(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"", "no method: give --method " + allMethods},
		{"method=functorch grad_sample_mode=hooks", "method functorch goes with grad_sample_mode functorch, not hooks"},
		{"method=naive physical_batch_size=2", "method naive goes with physical_batch_size 1, not 2"},
		{"method=ghots", `unknown method "ghots"; did you mean ghost?`},
		{"method=xyz", `unknown method "xyz"; known: ` + allMethods},
		{"method=ghost preset=smal", `unknown preset "smal"; did you mean small?`},
		{"method=ghost preset=huge", `unknown preset "huge"; known: tiny, small, medium, 1b, seed`},
		{"method=ghost model=mlp preset=seed", "preset seed has no sizes for model mlp; known: tiny, small"},
		{"method=ghost batchsize=4", `unknown option "batchsize"; did you mean batch_size?`},
		{"method=ghost batch_size=4 batch-size=4", "option batch_size is given twice"},
		{"method=ghost batch_size=", "batch_size is empty"},
		{"method=ghost batch_size=4.5", `batch_size must be a whole number, not "4.5"`},
		{"method=ghost batch_size=99999999999999999999",
			`batch_size must be a whole number, not "99999999999999999999"`},
		{"method=ghost batch_size=0", "batch_size must be at least 1, not 0"},
		{"method=ghost max_grad_norm=0", "max_grad_norm must be more than 0, not 0"},
		{"method=ghost max_grad_norm=inf", `max_grad_norm must be a number, not "inf"`},
		{"method=vanilla noise_multiplier=-1", "noise_multiplier must be at least 0, not -1"},
		{"method=ghost precision=fp16", `unknown precision "fp16"; known: fp32, bf16`},
		{"method=ghost optimizer=lion", `unknown optimizer "lion"; known: sgd, adam, adamw`},
		{"method=ghost checkpointing=maybe", `checkpointing must be true or false, not "maybe"`},
		{"method=ghost model=mlp mlp_dims=5120", `mlp_dims must look like 5120,2560,1280, not "5120"`},
		{"method=ghost hidden_dim=100", "num_heads must be a divisor of hidden_dim 100, not 8"},
		{"method=ghost physical_batch_size=3", "physical_batch_size must be a divisor of batch_size 4, not 3"},
		{"method=ghost physical_batch_size=8", "physical_batch_size must be a divisor of batch_size 4, not 8"},
		{"method=ghost clipping=per_layer", "clipping per_layer is not supported with method ghost: it scales each " +
			"sample's loss by one factor for all layers; use method dpsgd, bk, flash_bk or loop"},
		{"method=flash clipping=adaptive", "clipping adaptive is not supported with method flash: of Opacus' " +
			"optimizers only that of method dpsgd both adapts the bound and clips every sample by it; use " +
			"method dpsgd"},
		{"method=dpsgd clipping=adaptive poisson=1", "clipping adaptive is not supported with poisson: Opacus " +
			"divides by the number of samples drawn, which may be 0; use clipping flat or per_layer"},
		{"method=functorch clipping=adaptive precision=bf16", "clipping adaptive is not supported with precision " +
			"bf16: Opacus' optimizer for it multiplies per-sample gradients in bf16 by factors in fp32, which torch " +
			"refuses; use precision fp32, or clipping flat or per_layer"},
		{"method=dpsgd clipping=adaptive noise_multiplier=2", "noise_multiplier 2 must be less than 2 times " +
			"unclipped_num_std 1"},
		{"method=dpsgd clipping=adaptive min_clipbound=0.5 max_clipbound=0.25", "min_clipbound 0.5 must be less than " +
			"max_clipbound 0.25"},
		{"method=dpsgd clipping=adaptive target_unclipped_quantile=1.1", "target_unclipped_quantile must be at most " +
			"1, not 1.1"},
		{"method=ew precision=bf16", "precision bf16 is not supported with grad_sample_mode ew: torch's expanded " +
			"weights multiply without autocast; use grad_sample_mode hooks or functorch"},
		{"method=dpsgd checkpointing=yes", "checkpointing is not supported with method dpsgd: recomputation would " +
			"run its hooks twice; use vanilla, loop, or a smaller physical_batch_size"},
		{"method=vanilla model=mlp checkpointing=true", "checkpointing is not supported with model mlp: it has no " +
			"blocks to recompute; use model transformer"},
	} {
		params, err := Resolve(pairs(c.given))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v, %v\nwant %s", c.given, params, err, c.want)
		}
	}
}

// A name such as functorch, which stands for a method with certain parameters, resolves to the method and these
// parameters.
func TestMethodsWithParameters(t *testing.T) {
	for _, c := range []struct{ given, same string }{
		{"method=functorch", "method=dpsgd grad_sample_mode=functorch"},
		{"method=hooks", "method=dpsgd"},
		{"method=naive batch_size=8", "method=loop batch_size=8 physical_batch_size=1"},
	} {
		got, err := Resolve(pairs(c.given))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := Resolve(pairs(c.same)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s\ngot  %v\nwant %v, %v", c.given, got, want, err)
		}
	}
}

// The result of Resolve can be resolved again, so a run can be repeated from its manifest.
func TestResolveIsIdempotent(t *testing.T) {
	for _, text := range []string{
		"method=hooks preset=tiny checkpointing=false learning_rate=3e-5 seed=9223372036854775807",
		"method=ew clipping=adaptive", "method=naive clipping=per_layer poisson=yes", "method=norm_only model=mlp",
	} {
		first, err := Resolve(pairs(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Resolve(texts(first))
		if err != nil || !maps.Equal(again, first) {
			t.Errorf("got %v, %v\nwant %v", again, err, first)
		}
	}
}

func texts(params map[string]any) map[string]string {
	given := map[string]string{}
	for name, value := range params {
		given[name] = text(value)
	}
	return given
}

func pairs(text string) map[string]string {
	given := map[string]string{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		given[name] = value
	}
	return given
}
