package schemas

// A Category says what bytes are for.
type Category = string

// The categories of allocated bytes. [CategoryTable] describes each.
const (
	Parameters           Category = "parameters"
	Buffers              Category = "buffers"
	OptimizerState       Category = "optimizer_state"
	SummedGradients      Category = "summed_gradients"
	Noise                Category = "noise"
	Gradients            Category = "gradients"
	PerSampleGradients   Category = "per_sample_gradients"
	NormSamples          Category = "norm_samples"
	Activations          Category = "activations"
	HookActivations      Category = "hook_activations"
	StoredBackprops      Category = "stored_backprops"
	ClipTemporaries      Category = "clip_temporaries"
	Outputs              Category = "outputs"
	Inputs               Category = "inputs"
	AutocastCache        Category = "autocast_cache"
	Workspace            Category = "workspace"
	ActivationGradients  Category = "activation_gradients"
	ForwardTemporaries   Category = "forward_temporaries"
	OptimizerTemporaries Category = "optimizer_temporaries"
	Script               Category = "script"
	Slack                Category = "slack"
	Untraced             Category = "untraced"
	Other                Category = "other"
)

// A CategoryRow describes one category: its name, its colour in pictures and its text in the documentation.
type CategoryRow struct {
	Category Category
	// Color is the colour of the category in every picture, as 0xRRGGBB.
	Color uint32
	// NamesParameters is true if the category's owners are named after the parameter or the buffer that they belong to.
	// Owners in other categories are named after nodes of autograd's graph, or by names from the script.
	NamesParameters bool
	// BytesOf completes "bytes of …" in docs/reference/categories.md, in Markdown.
	BytesOf string
}

// CategoryTable has a row for every category. The rows are in the order of precedence: a block with several owners
// counts under the first of their categories. Pictures stack categories in this order too. Related categories share a
// hue (blue: the model's state; orange: gradients; green: held for backward; others have various hues). The lightness
// alternates, so that neighbours differ in grey print and for colour-blind readers.
var CategoryTable = []CategoryRow{
	{Parameters, 0x204d8b, true,
		"model weights. Weights that FSDP2 gathers from other ranks for a while are included."},
	{Buffers, 0xc6dbef, true,
		"registered buffers of modules"},
	{OptimizerState, 0x5b9bd5, true,
		"what an optimizer keeps between steps, such as Adam's moments"},
	{SummedGradients, 0x8c2d04, true,
		"the sum of clipped gradients, such as Opacus' `summed_grad`"},
	{Noise, 0xffe6d2, true,
		"the noise that a DP method adds to that sum"},
	{Gradients, 0xe16114, true,
		"`p.grad`, once autograd has accumulated it. The flat copies in which DDP and FSDP2 average gradients between " +
			"ranks are included."},
	{PerSampleGradients, 0xf6b277, true,
		"`grad_sample` and its staging copies"},
	{NormSamples, 0x54270f, true,
		"norms of per-sample gradients"},
	{Activations, 0x58b793, false,
		"tensors that autograd holds for backward"},
	{HookActivations, 0xe2f5c1, false,
		"tensors that only the hooks of a DP method hold for backward"},
	{StoredBackprops, 0x01645f, false,
		"output gradients that a DP method keeps beyond their layer's backward"},
	{ClipTemporaries, 0xd98cb3, false,
		"temporaries of a DP method that computes norms or per-sample gradients, such as ghost clipping's Gram matrices " +
			"and scaled backprops"},
	{Outputs, 0xf7e463, false,
		"results of the outermost forward call, and roots of backward, until the model's next call has ended"},
	{Inputs, 0x836700, false,
		"arguments of the outermost forward call, and what a loss compares with. The latter was allocated outside every " +
			"pass, and the node of the loss saves it."},
	{AutocastCache, 0x11aaff, false,
		"low-precision copies of weights that autocast keeps until its outermost context ends"},
	{Workspace, 0xc9b7e4, false,
		"cuBLAS workspaces, which torch's allocator holds"},
	{ActivationGradients, 0x7346a5, false,
		"gradients that flow through backward and belong to no parameter. Temporaries of a script's hooks there are " +
			"included."},
	{ForwardTemporaries, 0xf9bbad, false,
		"what a forward pass allocates and frees, also when it is recomputed"},
	{OptimizerTemporaries, 0x7a1f3d, false,
		"what the optimizer's update allocates and frees, or the addition of noise"},
	{Script, 0x77ff99, false,
		"what only the script's own references keep: clones of gradients, caches, feature banks, outputs in lists. The " +
			"holder names it, if it is known. What the script's own code allocates outside every pass is included."},
	{Slack, 0xd1d1d1, false,
		"blocks beyond the request: rounding to 512 B, and remainders too small to split off"},
	{Untraced, 0x494949, false,
		"blocks from before the recording, or from between two windows of recorded steps"},
	{Other, 0x959595, false,
		"everything else"},
}

// Categories are the names in [CategoryTable], in its order.
var Categories = func() (names []Category) {
	for _, row := range CategoryTable {
		names = append(names, row.Category)
	}
	return names
}()

var precedence = func() map[Category]int {
	places := make(map[Category]int, len(CategoryTable))
	for i, row := range CategoryTable {
		places[row.Category] = i
	}
	return places
}()

// Precedence returns the index of a category in [Categories]; unknown categories come last.
func Precedence(c Category) int {
	if p, ok := precedence[c]; ok {
		return p
	}
	return len(Categories)
}

// NamesParameters reports whether owners in a category are named after parameters and buffers.
func NamesParameters(c Category) bool {
	p := Precedence(c)
	return p < len(CategoryTable) && CategoryTable[p].NamesParameters
}
