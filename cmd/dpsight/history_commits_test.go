package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A commit is one change to the repository of a training script: in a file, the text new replaces the text old. If old
// is empty, new becomes the whole file.
type commit struct {
	message, file, old, new string
	// moves is true if the commit changes what the script allocates.
	moves bool
}

// ganCommits are the changes to examples/scripts/gan.py after the commit that added it. Three of these commits change
// what the script allocates.
var ganCommits = []commit{
	{message: "add a README", file: "README.md", new: "# DCGAN\n\nTrains a DCGAN on synthetic images.\n"},
	{message: "ignore what Python compiles", file: ".gitignore", new: "__pycache__/\n"},
	{message: "say what the labels are for", file: "gan.py", old: "    criterion = nn.BCEWithLogitsLoss()\n",
		new: "    criterion = nn.BCEWithLogitsLoss()  # on logits, so that no sigmoid overflows\n"},
	{message: "name the beta that everyone changes", file: "gan.py",
		old: "def initialise(", new: "BETAS = (0.5, 0.999)\n\n\ndef " +
			"initialise("},
	{message: "use it for the discriminator", file: "gan.py",
		old: "discriminator.parameters(), lr=args.lr, betas=(0.5, 0.999)",
		new: "discriminator.parameters(), lr=args.lr, betas=BETAS"},
	{message: "use it for the generator", file: "gan.py", old: "generator.parameters(), lr=args.lr, betas=(0.5, 0.999)",
		new: "generator.parameters(), lr=args.lr, betas=BETAS"},
	{message: "a larger learning rate", file: "gan.py", old: "default=2e-4", new: "default=3e-4"},
	{message: "print the learning rate", file: "gan.py", old: "    for step in range(args.steps):\n",
		new: "    print(f\"learning rate {args.lr}\")\n    for step in range(args.steps):\n"},
	{message: "write how to run it", file: "README.md",
		old: "images.\n", new: "images:\n\n    python gan.py --steps 100\n"},
	{message: "back to the usual learning rate", file: "gan.py", old: "default=3e-4", new: "default=2e-4"},
	{message: "seed from the clock where asked to", file: "gan.py", old: "    torch.manual_seed(args.seed)\n",
		new: "    torch.manual_seed(args.seed if args.seed >= 0 else time.time_ns() % 2**32)\n"},
	{message: "drop out in the generator", file: "gan.py", old: "            before = channels\n",
		new:   "            if i == 1:\n                layers.append(nn.Dropout(0.2))\n            before = channels\n",
		moves: true},
	{message: "document the dropout", file: "README.md", old: "Trains a DCGAN", new: "Trains a DCGAN with dropout"},
	{message: "a name for the slope of the rectifiers", file: "gan.py", old: "BETAS = (0.5, 0.999)\n",
		new: "BETAS = (0.5, 0.999)\nSLOPE = 0.2\n"},
	{message: "use it in the first layer", file: "gan.py",
		old: "nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)",
		new: "nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(SLOPE)"},
	{message: "use it in the others", file: "gan.py", old: "nn.BatchNorm2d(2 * i * width), nn.LeakyReLU(0.2)",
		new: "nn.BatchNorm2d(2 * i * width), nn.LeakyReLU(SLOPE)"},
	{message: "a smaller spread of the first weights", file: "gan.py", old: "nn.init.normal_(module.weight, 0.0, 0.02)",
		new: "nn.init.normal_(module.weight, 0.0, 0.015)"},
	{message: "undo that, it trains worse", file: "gan.py", old: "nn.init.normal_(module.weight, 0.0, 0.015)",
		new: "nn.init.normal_(module.weight, 0.0, 0.02)"},
	{message: "print every fifth step", file: "gan.py", old: "if step % 10 == 0", new: "if step % 5 == 0"},
	{message: "an option for how often", file: "gan.py", old: "    return parser.parse_args()\n",
		new: "    parser.add_argument(\"--print-every\", type=int, default=5)\n    return parser.parse_args()\n"},
	{message: "obey it", file: "gan.py", old: "if step % 5 == 0", new: "if step % args.print_every == 0"},
	{message: "document the options", file: "README.md", old: "--steps 100\n", new: "--steps 100 --print-every 10\n"},
	{message: "a title with its article", file: "README.md", old: "# DCGAN\n", new: "# A DCGAN\n"},
	{message: "rectify in place in the discriminator", file: "gan.py", old: "nn.LeakyReLU(SLOPE)",
		new: "nn.LeakyReLU(SLOPE, inplace=True)", moves: true},
	{message: "no weight decay, said in words", file: "README.md",
		old: "with dropout", new: "with dropout and without weight decay"},
	{message: "the loss by a shorter name", file: "gan.py", old: "criterion(discriminator(fake), real_label)",
		new: "criterion(discriminator(fake), real_label)  # the generator's own"},
	{message: "milliseconds with a digit", file: "gan.py", old: "{milliseconds:.0f} ms", new: "{milliseconds:.1f} ms"},
	{message: "losses with three digits", file: "gan.py", old: "{loss_d:.4f}, generator {loss_g.item():.4f}",
		new: "{loss_d:.3f}, generator {loss_g.item():.3f}"},
	{message: "a guard for no steps", file: "gan.py", old: "    device = torch.device(\"cuda\")\n",
		new: "    if args.steps < 1:\n        raise SystemExit(\"--steps: at least one\")\n" +
			"    device = torch.device(\"cuda\")\n"},
	{message: "explain the two networks", file: "README.md",
		old: "# A DCGAN\n", new: "# A DCGAN\n\nTwo networks, two optimizers.\n"},
	{message: "list what is to be done", file: "TODO", new: "- images from a folder\n"},
	{message: "keep samples for a grid of pictures", file: "gan.py", old: "        optimizer_g.step()\n",
		new: "        optimizer_g.step()\n        samples.append(fake.detach()[:8])\n", moves: true},
	{message: "say how many pictures there are", file: "gan.py",
		old: "if __name__ ==", new: "# The grid has eight pictures a " +
			"step.\nif __name__ =="},
	{message: "the grid is on the list", file: "TODO", old: "- images", new: "- write the grid of pictures\n- images"},
	{message: "a licence", file: "LICENSE", new: "This is in the public domain.\n"},
	{message: "betas of Adam as the paper has them", file: "gan.py",
		old: "BETAS = (0.5, 0.999)", new: "BETAS = (0.5, 0.9)"},
	{message: "and back", file: "gan.py", old: "BETAS = (0.5, 0.9)", new: "BETAS = (0.5, 0.999)"},
	{message: "the device by a name of its own", file: "gan.py", old: "device = torch.device(\"cuda\")",
		new: "device = torch.device(\"cuda:0\")"},
	{message: "thank the authors", file: "README.md",
		old: "Two networks", new: "After Radford, Metz and Chintala. Two networks"},
}

// ganArguments is the command line that runs gan.py with a small model.
var ganArguments = []string{"gan.py", "--steps", "6", "--batch-size", "64", "--width", "16"}

// ganHistory makes a repository of 40 commits, a day apart, and returns the commits in order.
func ganHistory(t *testing.T, dir string) (revisions []string) {
	t.Helper()
	began := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		date := began.AddDate(0, 0, len(revisions)).Format(time.RFC3339)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date,
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	save := func(message string) {
		git("add", "--all")
		git("-c", "user.name=dpsight", "-c", "user.email=dpsight@example.com", "commit", "--quiet", "-m", message)
		revisions = append(revisions, git("rev-parse", "HEAD"))
	}
	git("init", "--quiet", "--initial-branch=main")
	script := strings.Replace(read("../../examples/scripts/gan.py"), "    for step in range(args.steps):\n",
		"    samples: list[torch.Tensor] = []\n    for step in range(args.steps):\n", 1)
	write("gan.py", strings.ReplaceAll(script, "LeakyReLU(0.2, inplace=True)", "LeakyReLU(0.2)"))
	save("a DCGAN")
	for _, c := range ganCommits {
		text := c.new
		if c.old != "" {
			was := read(filepath.Join(dir, c.file))
			if !strings.Contains(was, c.old) {
				t.Fatalf("%s: %q does not stand in %s", c.message, c.old, c.file)
			}
			text = strings.ReplaceAll(was, c.old, c.new)
		}
		write(c.file, text)
		save(c.message)
	}
	return revisions
}
