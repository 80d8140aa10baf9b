# make demo       what differential privacy costs, on this machine's GPU or on the phantom GPU, and a report on it
# make test       the tests, under torch 2.11.0: about 12 minutes on two cores. It says what it left out
# make test-more  test-rest (what make test left out), test-next (the agent and the phantom GPU under torch 2.15.0) and
#                 test-edges (benchmarks, fuzzing, the race detector)
# make test-long  hours: all of collect under torch 2.15.0, all kill tests, compiled scripts, every recording on the
#                 phantom GPU
# make test-torch TORCH=2.10  the tests that ask most of torch, under a version that CI does not run: 2.10 (CUDA 12.8)
#                 or 2.13
# make wheels     wheels for Linux, macOS and Windows, and a source distribution, in dist
# make walk       the wheel for Linux on x86-64, in fresh environments without Go and gcc, under Python 3.10 to 3.13
# make site       the documentation as a site, in the folder site
# make lint       gofmt, go vet, staticcheck, actionlint, ruff, mypy, Vale (docs/style.md), builds for Linux, macOS and
#                 Windows, and a report by a build that has nothing else
.PHONY: build setup demo test test-more test-rest test-edges test-next test-long test-torch repeat lint alone wheels
.PHONY: walk clean test-notebooks test-page test-paper tex-packages site

SHELL := /bin/bash
VENV := scripts/venv.sh requirements
AGENT := collect/agent/python
# Tests that draw hundreds of pictures, or print what the documentation shows, on one goroutine: under the race detector
# they take minutes and find nothing. So it is with examples, whose tests go through every recording with what other
# packages test, and with scripts of commands, each of which starts the program anew.
ALONE := Gallery|Geometry|Document|KnownErrorsAre|^TestScripts$$
# Tests that do more with DPSIGHT_TEST_LONG: all kills, compiled scripts, every recording on the phantom GPU.
LONGER := Kill|KindsOfScript|PhantomPredicts|ScriptsAreBrokenDown|World|VaryingSize

# Tests outside collect that run torch: the others would say the same under another version.
TORCH := Phantom|Scripts|Ending|Interrupted|Presets|Defects|Document

build:
	go build -o dpsight ./cmd/dpsight

# The interpreter of the built-in experiments is remembered in the cache, where dpsight looks for it.
setup: build
	@python=$$($(VENV)/torch-2.11.txt) && mkdir -p "$${XDG_CACHE_HOME:-$$HOME/.cache}/dpsight" && \
	echo "$$python" > "$${XDG_CACHE_HOME:-$$HOME/.cache}/dpsight/python" && echo "experiments run with $$python"

demo: build
	@scripts/demo.sh

# A Python with a torch, for go test: without one the tests that need torch would be skipped, so what makes it has to
# succeed first.
WITH = python=$$($(VENV)/torch-$(1).txt) && DPSIGHT_TEST_PYTHON=$$python

# Tests of several packages run at once: OpenMP's threads that spin between parallel regions would take the cores from
# the others.
test test-rest test-notebooks test-edges test-next test-long test-torch: export OMP_WAIT_POLICY := PASSIVE

test: setup
	$(call WITH,2.11) go test -timeout 40m ./...
	@scripts/left-out.sh

test-more: test-rest test-next test-edges

# make test-rest SHARE=1/3 runs every third of these tests, from the first.
test-rest: setup
	notebooks=$$($(VENV)/notebooks.txt) && $(call WITH,2.11) DPSIGHT_TEST_NOTEBOOKS_PYTHON=$$notebooks \
	  DPSIGHT_TEST_PART=rest go test -timeout 40m -run "$$(scripts/left-out.sh -run $(SHARE))" \
	  $$(scripts/left-out.sh -packages)

# A notebook that records its cells, tables and exports as other libraries read them: half a minute, in an environment
# of their own.
OTHERS := TestNotebook|TestStore|TestTablesAreReadByOthers|TestExportsAreReadByOthers
test-notebooks: setup
	notebooks=$$($(VENV)/notebooks.txt) && $(call WITH,2.11) DPSIGHT_TEST_NOTEBOOKS_PYTHON=$$notebooks \
	  DPSIGHT_TEST_PART=rest go test -run '^($(OTHERS))$$' ./collect/agent ./examples/tests

# The page in Chromium: its bundle is what its sources make, its numbers are those of analyze, and nothing leaves it. It
# needs Node 20.19 or later and Debian's chromium. Pictures of all views lie in $XDG_CACHE_HOME/dpsight/page-pictures;
# with PICTURES=main those of two of the four widths, which takes less time.
test-page: build
	@if ! command -v chromium >/dev/null || ! command -v npm >/dev/null || ! scripts/page.sh able; then \
	  echo "Node 20.19 or chromium is missing (apt-get install chromium): the page is not tested in a browser" >&2; \
	  exit 0; fi; \
	scripts/page.sh check && pictures=$${XDG_CACHE_HOME:-$$HOME/.cache}/dpsight/page-pictures && \
	rm -rf "$$pictures" && node report/web/tests/page.mjs "$$PWD/dpsight" "$$(command -v chromium)" examples "$$pictures" \
	  $(PICTURES) && $(call WITH,2.11) \
	node report/web/tests/served_page.mjs "$$PWD/dpsight" "$$(command -v chromium)" examples "$$pictures"

# Documents of dpsight paper, compiled: of the recorded stores, of odd ones, and in other classes. It takes a minute on
# two cores, and fails if LaTeX is there and a test is skipped. test-more tries acmart too.
TEX := texlive-latex-extra texlive-science texlive-pictures texlive-publishers texlive-fonts-recommended
test-paper:
	@if ! command -v pdflatex >/dev/null || ! command -v bibtex >/dev/null; then \
	  echo "LaTeX is missing: no paper is compiled. apt-get install --no-install-recommends $(TEX)" >&2; exit 0; fi; \
	out=$$(mktemp) && trap 'rm -f "$$out"' EXIT && set -o pipefail && \
	DPSIGHT_TEST_TEX=1 go test -timeout 25m -count=1 -v -run Compile ./report/paper | tee "$$out" | grep -v '^=== ' && \
	if grep -qE -e '--- SKIP|no tests to run' "$$out"; then echo "LaTeX is there, and tests were skipped" >&2; exit 1; fi

tex-packages:
	@echo $(TEX)

# The site: pages, links and anchors that do not exist, and what would be loaded from another host, are errors.
site: export NO_MKDOCS_2_WARNING := 1
site:
	$$(dirname $$($(VENV)/site.txt))/mkdocs build --strict --quiet
	@echo "the site is in the folder site; to search it: python3 -m http.server --directory site"

FUZZ := schemas/spool:FuzzParse schemas/spool:FuzzUnsealed schemas:FuzzDecode ingest/pickle:FuzzDecode \
  ingest/pickle:FuzzRewrite ingest/replay:FuzzReplay ingest/torchsnap:FuzzRead ingest/figures:FuzzRead \
  ingest/packed:FuzzList ingest/stackrules:FuzzUserRules collect/suite:FuzzWhere live:FuzzRequest \
  schemas/dense:FuzzUnmarshal

# Without a bound, finding a shorter input for each that reaches something new takes nearly all of the time.
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

# Ten predictions of each script have one peak, or announce how far it varies.
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

# Reports need nothing: a binary without cgo, without Python, settings or, where a namespace may be made, network, says
# the same.
alone:
	@temp=$$(mktemp -d) && trap 'rm -rf "$$temp"' EXIT && lonely= && \
	if unshare --map-root-user --net true 2>/dev/null; then lonely="unshare --map-root-user --net"; fi && \
	echo "report without cgo, Python$${lonely:+, network}" && go build -o "$$temp/usual" ./cmd/dpsight && \
	CGO_ENABLED=0 go build -o "$$temp/alone" ./cmd/dpsight && \
	"$$temp/usual" report examples/headline -o "$$temp/a" >/dev/null && \
	$$lonely env -i PATH=/nonexistent "$$temp/alone" report examples/headline -o "$$temp/b" >/dev/null && \
	cmp "$$temp/a/results.json" "$$temp/b/results.json"

# The wheels of all platforms, and the source distribution: dist/. auditwheel says whether those for Linux are what
# their names say.
wheels:
	$$($(VENV)/wheels.txt) scripts/wheels.py --audit

# What the wheel does where there is neither Go nor gcc. An interpreter that is not installed is named in the table, and
# then this fails.
walk: PYTHONS := /usr/bin/python3 3.10 3.11 3.12 3.13
walk:
	$$($(VENV)/wheels.txt) scripts/wheels.py --audit manylinux_2_28_x86_64
	$$($(VENV)/walk.txt) scripts/walk_wheel.py dist/dpsight-*-manylinux_2_28_x86_64.whl $(PYTHONS)

clean:
	rm -rf dpsight runs dist site
