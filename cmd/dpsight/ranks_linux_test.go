package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// Of two ranks under torchrun, one keeps another 32 MiB at each step. dpsight finds this growth and names its category
// and line, even if the other rank has the higher peak.
func TestRankThatGrows(t *testing.T) {
	testkit.Rest(t)
	const planted = `
import os
import torch

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
torch.distributed.init_process_group("gloo")
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
large = torch.empty((600 if rank == 0 and HIGHEST else 0) << 20, dtype=torch.uint8, device="cuda")
kept = []
for step in range(12):
    optimizer.zero_grad()
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    if rank == 1:
        kept.append(torch.empty(32 << 20, dtype=torch.uint8, device="cuda"))  # planted
torch.distributed.destroy_process_group()
`
	interpreter := python(t)
	t.Setenv("PHANTOM_DEVICES", "2")
	line := strings.Count(planted[:strings.Index(planted, "# planted")], "\n") + 1
	for _, highest := range []string{"True", "False"} {
		dir := t.TempDir()
		script := scriptFile(t, strings.Replace(planted, "HIGHEST", highest, 1))
		must(t, dir, "collect", "--device", "phantom", "--store", dir, "--", filepath.Join(filepath.Dir(interpreter),
			"torchrun"), "--standalone", "--nproc-per-node", "2", script)
		var doc struct {
			Runs []struct {
				Outlier struct {
					Rank  int32
					Parts int64 `json:"parts_delta_bytes"`
					Lines []struct {
						Line  string
						Delta int64 `json:"delta_bytes"`
					}
					Categories []struct {
						Category string
						Delta    int64 `json:"delta_bytes"`
					}
				}
			}
		}
		decodeOne(t, must(t, dir, "analyze", "ranks", "--store", dir, "--format", "json"), ranksShape, &doc)
		o := doc.Runs[0].Outlier
		if highest == "False" && (o.Rank != 1 || o.Categories[0].Category != "script" ||
			o.Categories[0].Delta != 12*32<<20 || o.Lines[0].Delta != 12*32<<20 ||
			o.Lines[0].Line != filepath.Base(script)+":"+strconv.Itoa(line)) {
			t.Errorf("%+v", o)
		}
		found := must(t, dir, "analyze", "findings", "--store", dir).stdout
		if !strings.Contains(found, "32.00 MiB a step, on cuda:1 of rank 1 [growth]") ||
			strings.Contains(found, "the highest of the run") != (highest == "True") {
			t.Error(found)
		}
	}
}
