# make demo       records on this machine's GPU, or predicts on the phantom GPU, what differential privacy costs. It
#                 writes a report.
# make test       runs the tests under torch 2.11.0, in about 12 minutes on two cores. It prints how many tests it left
#                 out.
# make test-more  runs test-rest (the tests that make test left out), test-next (the agent and the phantom GPU under
#                 torch 2.15.0) and test-edges (benchmarks, fuzzing, the race detector).
# make test-long  runs for hours. It tests all of collect under torch 2.15.0, all kill tests, compiled scripts, and
#                 every recording on the phantom GPU.
# make test-torch TORCH=2.10  runs the tests that depend most on torch, under a version that CI does not use: 2.10 (CUDA
#                 12.8) or 2.13.
# make wheels     makes wheels for Linux, macOS and Windows, and a source distribution, in dist.
# make walk       tries the wheel for Linux on x86-64 in fresh environments without Go and gcc, under Python 3.10 to
#                 3.13.
# make site       builds the documentation as a site, in the folder site.
# make lint       runs gofmt, go vet, staticcheck, actionlint, ruff, mypy and Vale (docs/style.md). It also builds
#                 dpsight for Linux, macOS and Windows, and checks that a report needs no cgo, Python and network.
.PHONY: build setup demo test test-more test-rest test-edges test-next test-long test-torch repeat lint alone wheels
.PHONY: walk clean test-notebooks test-page test-paper tex-packages site

SHELL := /bin/bash
VENV := scripts/venv.sh requirements
AGENT := collect/agent/python
# ALONE matches tests that draw hundreds of pictures, or print what the documentation shows, on one goroutine. Under the
# race detector they take minutes and find nothing. ALONE also matches TestScripts, in which each command starts the
# program again. make test-edges leaves out examples/tests too, since they test code that other packages test.
ALONE := Gallery|Geometry|Document|KnownErrorsAre|^TestScripts$$
# LONGER matches tests that do more with DPSIGHT_TEST_LONG: all kills, compiled scripts, every recording on the phantom
# GPU.
LONGER := Kill|KindsOfScript|PhantomPredicts|ScriptsAreBrokenDown|World|VaryingSize

# TORCH matches the tests outside collect that run torch. The other tests outside collect give the same result under any
# version of torch.
TORCH := Phantom|Scripts|Ending|Interrupted|Presets|Defects|Document

build:
	go build -o dpsight ./cmd/dpsight

# make setup writes the path of the interpreter for the built-in experiments into the cache, where dpsight looks for it.
setup: build
	@python=$$($(VENV)/torch-2.11.txt) && mkdir -p "$${XDG_CACHE_HOME:-$$HOME/.cache}/dpsight" && \
	echo "$$python" > "$${XDG_CACHE_HOME:-$$HOME/.cache}/dpsight/python" && echo "experiments run with $$python"

demo: build
	@scripts/demo.sh

# WITH makes a Python with the given version of torch and names it to go test. If this fails, the target fails. Without
# a Python with torch, go test would skip the tests that need torch.
WITH = python=$$($(VENV)/torch-$(1).txt) && DPSIGHT_TEST_PYTHON=$$python

# The tests of several packages run at the same time. With PASSIVE, OpenMP's threads do not spin between parallel
# regions, so they do not take the cores from other tests.
test test-rest test-notebooks test-edges test-next test-long test-torch: export OMP_WAIT_POLICY := PASSIVE

test: setup
	$(call WITH,2.11) go test -timeout 40m ./...
	@scripts/left-out.sh

test-more: test-rest test-next test-edges

# make test-rest SHARE=1/3 runs every third of the tests that make test left out, beginning with the first.
test-rest: setup
	notebooks=$$($(VENV)/notebooks.txt) && $(call WITH,2.11) DPSIGHT_TEST_NOTEBOOKS_PYTHON=$$notebooks \
	  DPSIGHT_TEST_PART=rest go test -timeout 40m -run "$$(scripts/left-out.sh -run $(SHARE))" \
	  $$(scripts/left-out.sh -packages)

# make test-notebooks tests a notebook that records its cells, and reads tables and exports with other libraries. make
# test-notebooks takes half a minute, in a separate environment.
OTHERS := TestNotebook|TestStore|TestTablesAreReadByOthers|TestExportsAreReadByOthers
test-notebooks: setup
	notebooks=$$($(VENV)/notebooks.txt) && $(call WITH,2.11) DPSIGHT_TEST_NOTEBOOKS_PYTHON=$$notebooks \
	  DPSIGHT_TEST_PART=rest go test -run '^($(OTHERS))$$' ./collect/agent ./examples/tests

# make test-page tests the page in Chromium. The committed bundle must equal what the sources give, the page must show
# the same numbers as dpsight's commands, and it must not send anything to another host. The test needs Node 20.19 or
# later and Debian's chromium. make test-page writes pictures of all views into $XDG_CACHE_HOME/dpsight/page-pictures.
# With PICTURES=main it draws only two of the four widths, which takes less time.
test-page: build
	@if ! command -v chromium >/dev/null || ! command -v npm >/dev/null || ! scripts/page.sh able; then \
	  echo "Node 20.19 or chromium is missing (apt-get install chromium): the page is not tested in a browser" >&2; \
	  exit 0; fi; \
	scripts/page.sh check && pictures=$${XDG_CACHE_HOME:-$$HOME/.cache}/dpsight/page-pictures && \
	rm -rf "$$pictures" && node report/web/tests/page.mjs "$$PWD/dpsight" "$$(command -v chromium)" examples "$$pictures" \
	  $(PICTURES) && $(call WITH,2.11) \
	node report/web/tests/served_page.mjs "$$PWD/dpsight" "$$(command -v chromium)" examples "$$pictures"

# make test-paper compiles documents of dpsight paper: papers of recorded stores and of unusual stores, and documents of
# other LaTeX classes. make test-paper takes a minute on two cores. If LaTeX is installed and a test is skipped, it
# fails. test-more also tests the class acmart.
TEX := texlive-latex-extra texlive-science texlive-pictures texlive-publishers texlive-fonts-recommended
test-paper:
	@if ! command -v pdflatex >/dev/null || ! command -v bibtex >/dev/null; then \
	  echo "LaTeX is missing: no paper is compiled. apt-get install --no-install-recommends $(TEX)" >&2; exit 0; fi; \
	out=$$(mktemp) && trap 'rm -f "$$out"' EXIT && set -o pipefail && \
	DPSIGHT_TEST_TEX=1 go test -timeout 25m -count=1 -v -run Compile ./report/paper | tee "$$out" | grep -v '^=== ' && \
	if grep -qE -e '--- SKIP|no tests to run' "$$out"; then echo "LaTeX is there, and tests were skipped" >&2; exit 1; fi

tex-packages:
	@echo $(TEX)

# make site fails if a page, a link or an anchor does not exist, or if a page would load something from another host.
site: export NO_MKDOCS_2_WARNING := 1
site:
	$$(dirname $$($(VENV)/site.txt))/mkdocs build --strict --quiet
	@echo "the site is in the folder site; to search it: python3 -m http.server --directory site"

FUZZ := schemas/spool:FuzzParse schemas/spool:FuzzUnsealed schemas:FuzzDecode ingest/pickle:FuzzDecode \
  ingest/pickle:FuzzRewrite ingest/replay:FuzzReplay ingest/torchsnap:FuzzRead ingest/figures:FuzzRead \
  ingest/packed:FuzzList ingest/stackrules:FuzzUserRules collect/suite:FuzzWhere live:FuzzRequest \
  schemas/dense:FuzzUnmarshal

# Go's fuzzer looks for a shorter form of each input that reaches new code. Without -fuzzminimizetime this takes nearly
# all of the time.
test-edges: setup
	python3 scripts/measure_prediction.py --untimed ./dpsight "$$($(VENV)/torch-2.11.txt)" host cast
	go test -run '^$$' -bench Report -benchtime 3x ./examples/tests
	go test -run '^$$' -bench IsolatedRun -benchtime 20x ./collect
	go test -run '^$$' -bench Join/unequal/10M -benchtime 1x -cpu 2 ./ingest/join
	for at in $(FUZZ); do \
	  go test -run '^$$' -fuzz "^$${at#*:}$$" -fuzztime 8s -fuzzminimizetime 10x ./$${at%:*} || exit 1; done
	go test -race -short -skip '$(ALONE)' -timeout 20m $$(go list ./... | grep -v /examples/tests$$)

test-next: setup
	$(call WITH,2.15) go test -timeout 40m ./collect/agent ./collect/phantom
	$(call WITH,2.15) go test -timeout 20m -run 'Walk|MemTracker|KindsOfScript/opacus' ./collect/livetest

test-long: export DPSIGHT_TEST_PART := all
test-long: setup
	$(call WITH,2.15) go test -timeout 40m ./collect/...
	$(call WITH,2.15) go test -timeout 40m -run '$(TORCH)' ./cmd/... ./examples/tests
	scripts=$$($(VENV)/scripts.txt) && $(call WITH,2.11) DPSIGHT_TEST_LONG=1 DPSIGHT_TEST_SCRIPTS_PYTHON=$$scripts \
	  go test -timeout 60m -count=1 -run '$(LONGER)' ./collect/livetest ./collect/suite ./examples/tests
	$(call WITH,2.11) DPSIGHT_TEST_LONG=1 go test -timeout 60m -count=1 -run TrendOfARepository ./cmd/dpsight
	ray=$$($(VENV)/ray.txt) && $(call WITH,2.11) DPSIGHT_TEST_LONG=1 DPSIGHT_TEST_RAY_PYTHON=$$ray \
	  go test -timeout 60m -count=1 -run TestAttachActor ./collect/livetest

	$(MAKE) --no-print-directory repeat

# make repeat predicts each script ten times. The ten peaks must be equal, or the predictions must announce their range.
repeat: setup
	scripts/repeat_predictions.py ./dpsight "$$($(VENV)/torch-2.11.txt)" collect/livetest/testdata/cases/*.py \
	  examples/scripts/gan.py "examples/scripts/oom.py die" "examples/scripts/oom.py recover"
	scripts/repeat_predictions.py --gpus 2 ./dpsight "$$($(VENV)/torch-2.11.txt)" \
	  collect/livetest/testdata/cases/{two_gpus,dataparallel}.py
	scripts/repeat_predictions.py ./dpsight "$$($(VENV)/scripts.txt)" examples/scripts/{resnet,llama_lora}.py

test-torch: export DPSIGHT_TEST_PART := all
test-torch:
	$(call WITH,$(TORCH)) go test -timeout 60m ./collect/phantom ./collect/agent
	$(call WITH,$(TORCH)) go test -timeout 60m -run 'Kinds|Walk|MemTracker' ./collect/livetest
	$(call WITH,$(TORCH)) go test -timeout 60m -run 'PhantomPredictsRecordings' ./examples/tests

lint:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go tool -modfile=tools/go.mod actionlint .github/workflows/*.yml examples/github/*.yml
	$$(dirname $$($(VENV)/lint.txt))/ruff check collect ingest examples scripts
	MYPYPATH=$(AGENT) $$(dirname $$($(VENV)/lint.txt))/mypy --strict --python-version 3.10 --follow-imports=silent \
	  $(AGENT)/dpsight/{__init__,__main__,api}.py $(AGENT)/dpsight/client collect/agent/tests/typed.py
	scripts/words.sh
	@for os in linux darwin windows; do \
	  echo "build for $$os" && CGO_ENABLED=0 GOOS=$$os go build -o /dev/null ./cmd/dpsight || exit 1; done
	GOOS=darwin CGO_ENABLED=0 go vet ./...
	GOOS=windows CGO_ENABLED=0 go vet ./...
	@$(MAKE) --no-print-directory alone

# make alone checks that a report needs neither cgo, Python nor settings. A program that was built without cgo and runs
# without them must write the same results.json. If the machine allows a network namespace, it also runs without
# network.
alone:
	@temp=$$(mktemp -d) && trap 'rm -rf "$$temp"' EXIT && lonely= && \
	if unshare --map-root-user --net true 2>/dev/null; then lonely="unshare --map-root-user --net"; fi && \
	echo "report without cgo, Python$${lonely:+, network}" && go build -o "$$temp/usual" ./cmd/dpsight && \
	CGO_ENABLED=0 go build -o "$$temp/alone" ./cmd/dpsight && \
	"$$temp/usual" report examples/headline -o "$$temp/a" >/dev/null && \
	$$lonely env -i PATH=/nonexistent "$$temp/alone" report examples/headline -o "$$temp/b" >/dev/null && \
	cmp "$$temp/a/results.json" "$$temp/b/results.json"

# make wheels makes the wheels of all platforms and the source distribution in dist. auditwheel checks that the wheels
# for Linux need no newer glibc than their names say.
wheels:
	$$($(VENV)/wheels.txt) scripts/wheels.py --audit

# make walk tries the wheel where neither Go nor gcc can be found. If an interpreter is not installed, the table names
# it, and make walk fails.
walk: PYTHONS := /usr/bin/python3 3.10 3.11 3.12 3.13
walk:
	$$($(VENV)/wheels.txt) scripts/wheels.py --audit manylinux_2_28_x86_64
	$$($(VENV)/walk.txt) scripts/walk_wheel.py dist/dpsight-*-manylinux_2_28_x86_64.whl $(PYTHONS)

clean:
	rm -rf dpsight runs dist site
