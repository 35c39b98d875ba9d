# Targets for people and for continuous integration. What is missing is installed (as root, on Debian 12).

GO ?= go

# As the programs are built: what tests and VMs share is compiled once.
export CGO_ENABLED = 0

.PHONY: all go build test ready unit units screens browser vm images agents clients bypasses failures load soak model lint generate chart corpus shells long fuzz demo bench release release-test clean distclean

all: build

# gRPC's tracing would link templates, and with them every method of every type: 8 MiB of program file.
TAGS = grpcnotrace,no_gogo

GO_VERSION = $(shell $(GO) env GOVERSION 2>/dev/null || $(GO) version 2>/dev/null | cut -d' ' -f3)

go: # Go 1.19, Debian 12's own, would say nothing but "invalid go version" about go.mod
	@case "$(GO_VERSION)" in \
	'') echo "weir: there is no Go in PATH: install Go 1.26 from https://go.dev/dl/" >&2; exit 1 ;; \
	go1.[0-9]|go1.[0-9].*|go1.1[0-9]|go1.1[0-9].*|go1.20|go1.20.*) echo "weir: $(GO_VERSION) is too old: install Go 1.26 from https://go.dev/dl/ and put it first in PATH" >&2; exit 1 ;; \
	esac

build: go ## bin/weir, bin/weir-hook for containers, bin/weir-fleet for people on other machines, and bin/weir-otel for collectors
	$(GO) build -tags $(TAGS) -trimpath -ldflags='-s -w' -o bin/weir ./cmd/sensor
	$(GO) build -trimpath -ldflags='-s -w' -o bin/weir-hook ./cmd/hook
	$(GO) build -trimpath -ldflags='-s -w' -o bin/weir-fleet ./cmd/fleet
	$(GO) build -tags $(TAGS) -trimpath -ldflags='-s -w' -o bin/weir-otel ./cmd/otel

test: ready ## unit and VM tests: all on the newest kernel, the first of each way out on the older; but for what make clients, make failures, make load and make soak run
	$(GO) test -timeout 90m ./...

ready: go images shells agents units screens browser ## what the tests need

unit: go shells agents units screens browser ## the tests that boot nothing
	$(GO) test -timeout 30m $$($(GO) list ./... | grep -v /test/vm)

units: ## systemd-analyze, which judges the units
	scripts/packages units

screens: ## tmux, on whose screen the tests read what a person sees
	scripts/packages screens

browser: ## Chromium, in which the tests use the console's page
	scripts/packages browser

shells: ## the programs that the classifier's tests run
	scripts/packages shells

long: shells ## the classifier against real shells with 20,000 generated commands and 10,000 texts, and every fuzzer for a minute
	$(GO) test -timeout 120m ./test/classifytest -variants 20000
	$(MAKE) fuzz TIME=1m

# Only one fuzzer runs at a time. What it finds it leaves in the package's testdata/fuzz, where it is a test from then on.
fuzz: go ## every fuzzer of every parser, each for TIME (30s); IN=internal/dns only those there
	grep -roE '^func Fuzz\w+' --include='*_test.go' $(or $(IN),cmd internal) | sort | sed 's|/[^/]*:func | |' | while read -r dir name; do \
		echo "$$dir $$name" && nice -n 19 $(GO) test ./$$dir -run '^$$' -fuzz "^$$name\$$" -fuzztime $(or $(TIME),30s) -fuzzminimizetime 1x </dev/null || exit 1; done

agents: ## Claude Code and Codex, for test/agents, and axe, for test/console; without npm they are left out, loudly
	scripts/agents

vm: ## packages, kernels and the root image for the VMs
	scripts/vm root

images: ## and the root image with systemd and containerd
	scripts/vm root containers

clients: ## docs/clients.md anew, from all clients on all kernels
	scripts/vm root clients
	VMTEST_CLIENTS=. VMTEST_UPDATE=1 VMTEST_KERNELS=6.12 $(GO) test -count=1 -timeout 60m ./test/vm -run 'TestVM/6.12/clients'
	VMTEST_CLIENTS=. $(GO) test -count=1 -timeout 120m ./test/vm -run 'TestVM/[^/]*/clients'

# In a guest an id stands in the name of a test without subtests, or in that of a subtest: -run picks these, and the table of attempts.
BYPASSES = $(GO) run ./scripts/bypasses
bypasses: images shells ## docs/bypasses.md anew: every test of a way out, on all kernels; then prints it
	packages="$$($(BYPASSES) -packages)" && $(GO) test -json $$packages >.cache/bypasses.json; \
	groups="$$($(BYPASSES) -groups)" && VMTEST_FAILURE=1 $(GO) test -json -count=1 -timeout 180m ./test/vm -run "TestVM/[^/]*/($$groups)/[^/]*/(B[0-9][0-9]|Attempts)" >>.cache/bypasses.json; \
	$(BYPASSES) docs/bypasses.md .cache/bypasses.json; status=$$?; cat docs/bypasses.md; exit $$status

failures: images agents ## what breaks: kill -9, memory, disks, clocks, pins, upgrades, policies; what runs on one kernel otherwise: on all; what takes long; and some clients
	scripts/vm containers13 clients
	scripts/prometheus
	VMTEST_FAILURE=1 $(GO) test -count=1 -timeout 120m ./test/vm -run 'TestVM/[^/]*/(failure|fleet|agents|answers|bare|bridge|cascade|cgroups|containers|egress|monitoring|names|operator|session|sources|systemd)'
	VMTEST_CLIENTS=core VMTEST_KERNELS=6.12 $(GO) test -count=1 -timeout 60m ./test/vm -run 'TestVM/6.12/clients'

load: images ## failures that take long, and 200 cgroups, 2,000 grants and 10,000 held commands, and what they leave behind
	VMTEST_LOAD=200,2000,10000 VMTEST_KERNELS=6.12 $(GO) test -count=1 -v -timeout 150m ./test/vm -run 'TestVM/6.12/(failure|load|containers)'

soak: go vm ## random operations and ways out for SOAK (10m), each byte that arrives explained by the model in test/model; SEED=N repeats a sequence, KERNEL=6.1 is the older
	VMTEST_SOAK=$(or $(SOAK),10m),$(or $(SEED),0) VMTEST_KERNELS=$(or $(KERNEL),6.12) $(GO) test -count=1 -v -timeout 180m ./test/vm -run 'TestVM/[^/]*/soak'

model: go ## the daemon's books against the model of the rules in test/model, for an hour or so; SEED=N RUNS=1 repeats a sequence
	$(GO) test -count=1 -timeout 180m ./internal/daemon -run '^TestModel$$' -model.seed $(or $(SEED),0) -model.runs $(or $(RUNS),5000)

lint: ## formatting, vet, staticcheck, import rules, generated files
	scripts/lint

generate: ## the BPF objects and their Go types
	scripts/packages generate
	$(GO) generate ./...

chart: go ## deploy/kubernetes/weir.yaml anew, from the chart; and what Helm, Kubernetes' types and Pod Security say of it
	cd scripts/chart && $(GO) run . && $(GO) test .

corpus: ## the command classifier and the guard on labelled commands: make corpus CORPORA=DIR
	@$(GO) run ./scripts/corpus "$(CORPORA)"

demo: go vm ## the main job, shown in a VM
	$(GO) run ./test/vm/cmd/demo

bench: images browser ## what Weir costs: a table, and bench/results.json
	$(GO) run ./test/vm/cmd/bench
	$(GO) test -run '^$$' -bench 'Decide|Busy' -cpu 1 ./internal/gate
	$(GO) test -run '^$$' -bench Guard -cpu 1 ./internal/toolguard
	$(GO) test -run '^$$' -bench 'Paced' -benchtime 10s ./internal/bridge
	$(GO) test -run '^$$' -bench 'Hook' ./cmd/hook
	$(GO) test -run '^$$' -bench 'FirstByte' ./internal/modelproxy
	$(GO) test -run '^$$' -bench 'Stand' ./internal/names
	$(GO) test -run '^$$' -bench 'FirstPaint|Busy' -benchtime 10x ./test/console
	$(GO) test -run '^$$' -bench Second -benchtime 20x ./internal/fleet/link
	$(GO) test -run '^$$' -bench CatchUp -benchtime 1x ./internal/fleet/link
	$(GO) test -run '^$$' -bench Question -benchtime 20x ./internal/daemon
	$(GO) test -run '^$$' -bench 'Scrub|Fetch|Preview' ./internal/redact ./internal/vault ./internal/memory

release: ## dist: static programs, deb and rpm, the image's root, policies, units, manifests, chart, manual, bill of materials, checksums
	scripts/release

# Of the last commit, in clones of it. The debs are installed, upgraded, removed and purged in VMs of Debian 12 and 13.
release-test: export VMTEST_DEBS = $(CURDIR)/.cache/debs
release-test: images ## the release is the same when it is built twice, its packages are clean, and live through their life
	scripts/vm containers13
	scripts/packages release
	cd scripts/chart && $(GO) test -count=1 .
	cd scripts/pack && $(GO) test -count=1 -timeout 60m .
	$(GO) test -count=1 -timeout 60m ./test/vm -run 'TestVM/[^/]*/deb'

clean: ## what was built
	rm -rf bin dist

distclean: clean ## and what was downloaded
	rm -rf .cache
