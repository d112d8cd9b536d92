# `make help` lists the targets.

VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
PROGRAMS   = ./cmd/pmk-sched ./cmd/pmk-extender $(if $(filter linux,$(shell go env GOOS)),./cmd/pmk-lab)
UNIT       = $(eval UNIT := $(shell go list ./... | grep -vE '/test/(apiserver|bench|binary|browser|lab)'))$(UNIT)

# The version comes from LDFLAGS; git refuses to report more in a clone that belongs to another user.
# Vet, lint, tests and programs are compiled with the same settings: each dependency once.
export GOFLAGS := $(strip $(shell go env GOFLAGS 2>/dev/null) -buildvcs=false -trimpath)
export CGO_ENABLED := 0

# The openb trace, which the benchmarks of GPUs and of simulations need.
export PMK_SCHED_OPENB ?= $(realpath ../shared/data/openb)

# make check vets all tests.
TEST := go test -vet=off -ldflags=-w

# Packages with golden files.
GOLDENS     = $(sort $(dir $(shell grep -rl 'golden[.]Equal' --include=*_test.go cmd internal profiles rbac test/internal)))

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | awk -F'\t' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: build
build: ## compile pmk-sched, pmk-lab (on Linux) and pmk-extender into bin/
	@mkdir -p bin
	go build -ldflags '$(LDFLAGS)' -o bin/ $(PROGRAMS)

bin/helm: hack/tools/helm/go.mod
	go -C hack/tools/helm build -ldflags=-w -o $(CURDIR)/bin/helm helm.sh/helm/v3/cmd/helm

bin/cosign: hack/tools/cosign/go.mod
	go -C hack/tools/cosign build -ldflags=-w -o $(CURDIR)/bin/cosign github.com/sigstore/cosign/v3/cmd/cosign

bin/krew: hack/tools/krew/go.mod
	go -C hack/tools/krew build -ldflags=-w -o $(CURDIR)/bin/krew sigs.k8s.io/krew/cmd/krew

bin/source-controller: hack/tools/source-controller/go.mod
	go -C hack/tools/source-controller build -ldflags=-w -o $(CURDIR)/bin/source-controller github.com/fluxcd/source-controller

bin/helm-controller: hack/tools/helm-controller/go.mod
	go -C hack/tools/helm-controller build -ldflags=-w -o $(CURDIR)/bin/helm-controller github.com/fluxcd/helm-controller

bin/argocd: hack/tools/argocd/go.mod
	go -C hack/tools/argocd build -ldflags=-w -o $(CURDIR)/bin/argocd github.com/argoproj/argo-cd/v3/cmd

bin/nfpm: hack/tools/nfpm/go.mod
	go -C hack/tools/nfpm build -ldflags=-w -o $(CURDIR)/bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm

bin/hugo: hack/tools/hugo/go.mod
	go -C hack/tools/hugo build -ldflags=-w -o $(CURDIR)/bin/hugo github.com/gohugoio/hugo

.PHONY: deps
deps: ## install the Debian packages that the lab and the tests need (only what is missing; root)
	@hack/deps.sh

.PHONY: demo
demo: deps build ## start a lab and deploy a custom scheduler that binds its first pod (root)
	@hack/demo.sh

.PHONY: demo-foresight
demo-foresight: build ## what a scheduler that packs would do with the pods of a generated cluster, as a web page: REPORT (foresight.html)
	@hack/demo-foresight.sh

.PHONY: check
check: ## gofmt, vet, lint, import rules, go mod tidy, goldens: before every commit
	@hack/check.sh $(addprefix ./,$(GOLDENS))

.PHONY: schema
schema: ## write the JSON schemas of pmk-sched.yaml and of tests, the CRD and docs/file.md from api/v1alpha1
	go -C hack/tools/schema build -ldflags=-w -o $(CURDIR)/bin/schema .
	bin/schema > bin/schema.json && mv bin/schema.json api/v1alpha1/schema.json
	bin/schema SchedulingTest > bin/schema.json && mv bin/schema.json api/v1alpha1/schema-test.json
	bin/schema crd > bin/crd.yaml && mv bin/crd.yaml api/v1alpha1/crd.yaml
	go test -vet=off ./cmd/pmk-sched -run Reference -update

.PHONY: unit
unit: deps ## unit tests, goldens, command line, fake module proxy, in-memory registry: before every commit
	$(TEST) $(UNIT)

.PHONY: programs
programs: build ## compile every program that `make test` runs, one after the other: Kubernetes v1.24.3, schedulers with plugins
	@hack/programs.sh

# The parts run one after the other: labs use a processor even when no test uses them, and tests that
# are short of processor time see schedulers that lose their leases. The tests include the goldens.
# The programs of the labs and of the tests collect garbage less often, which takes more memory (8 GiB
# in all) and less time.
.PHONY: test
test: deps build bin/helm programs ## check, unit, and each capability once at v1.24.3 on a real API server or a lab (root)
	GOGC=$${GOGC:-400} $(MAKE) check GOLDENS=
	@GOGC=$${GOGC:-400} hack/seconds.sh unit $(TEST) $(UNIT)
	@GOGC=$${GOGC:-400} hack/seconds.sh servers $(INTEGRATION) $(SERVERS)
	@LABS='shared-pmk shared-kubeadm exclusive-pmk' GOGC=$${GOGC:-400} hack/with-labs.sh hack/seconds.sh labs $(INTEGRATION) $(LABTESTS)

.PHONY: test-cases
test-cases: deps build bin/helm programs ## every case at v1.24.3 on real API servers and labs of each layout, with those of `make test` (root)
	@GOGC=$${GOGC:-400} hack/seconds.sh servers $(INTEGRATION) -tags cases $(SERVERS)
	@LABS='shared-pmk shared-kubeadm exclusive-pmk exclusive-kubeadm' GOGC=$${GOGC:-400} hack/with-labs.sh hack/seconds.sh labs $(INTEGRATION) -tags cases $(LABTESTS)

INTEGRATION = $(TEST) -p 2 -parallel 2 -count=1 -timeout 40m
# The longest package comes first; packages without tests of `make test` have no result.
SERVERS = ./test/apiserver/simulate ./test/binary/... ./test/apiserver/...
LABTESTS = ./test/lab/...

.PHONY: test-all
test-all: ## everything, in the parts of hack/parts.txt: those that have not passed at this commit; writes docs/status.md; takes hours (root)
	@hack/parts.sh

.PHONY: test-race
test-race: deps build ## the unit tests and the extender's tests with the race detector
	CGO_ENABLED=1 go test -race -timeout 30m $(UNIT)
	CGO_ENABLED=1 go build -race -o bin/race/ ./cmd/pmk-extender
	CGO_ENABLED=1 PMK_SCHED_TEST_EXTENDER=$(CURDIR)/bin/race/pmk-extender go test -race -count=1 -timeout 30m ./test/apiserver/extender/...

.PHONY: test-faults
test-faults: deps build ## kills at every step, failures of nodes and schedulers, every kind of credentials, a hostile cluster (root)
	hack/with-labs.sh go test -p 2 -count=1 -timeout 120m -parallel 4 -tags faults -run '^TestFault|^TestEveryKindOfCredentials' $(or $(PACKAGES),./test/lab/... ./test/apiserver/hostile ./test/apiserver/rollout)

.PHONY: test-releases
test-releases: deps build bin/cosign bin/krew bin/nfpm bin/helm bin/source-controller bin/helm-controller bin/argocd ## binaries, plugins and extenders of other releases; signed images; Flux and Argo CD with the chart of several releases; the files of a release of pmk-sched (root)
	@hack/deps.sh 'git git' 'redis-server redis-server' 'docker-registry docker-registry' 'rpm rpm' 'qemu-user-static qemu-aarch64-static' 'ruby ruby' 'zsh zsh'
	go test -p 1 -count=1 -timeout 120m -tags releases $(or $(PACKAGES),./hack/facts ./internal/artifact/build ./test/binary/release ./test/binary/releases ./test/binary/build ./test/binary/sign ./test/apiserver/controller ./test/apiserver/extender/calls ./test/apiserver/rollout ./test/apiserver/route ./test/apiserver/schedulers ./test/apiserver/shadow ./test/apiserver/simulate ./test/apiserver/plugins ./test/apiserver/flux ./test/apiserver/argocd)

.PHONY: test-labs
test-labs: deps build ## control-plane nodes of eleven releases from 1.20 to 1.37: schedulers, plugins, extenders, replacing, upgrading, upstream's e2e specs; PODS (10000) during rollouts and failures; a machine without a network (root)
	@hack/deps.sh 'debootstrap debootstrap'
	hack/with-labs.sh go test -p 1 -count=1 -timeout 8h -tags labs -v -run 'Release|Plugins|Extender|Upgraded|SecondScheduler|TwoLabs|ControlPlaneNodes|RKE2|BoundOnce|RealScheduler|Refresh|Sysdump|Explain|Arbiter|AreAsked' $(or $(PACKAGES),./test/lab/matrix ./test/lab/install ./test/lab/plugins ./test/lab/extender ./test/lab/replace ./test/lab/lifecycle ./test/lab/nodes ./test/lab/arbiter ./test/lab/ask ./test/lab/churn ./test/lab/airgap ./test/lab/conformance)

.PHONY: conformance
conformance: deps build ## the e2e specs of scheduling that Kubernetes publishes, at RELEASE (v1.24.3 and the newest), with the stock scheduler, with `replace` and with a second scheduler; writes docs/conformance.md (root)
	RELEASE='$(RELEASE)' hack/with-labs.sh go test -count=1 -timeout 4h -parallel 3 -tags labs -v -run SchedulingSpecs ./test/lab/conformance -update
	go test -vet=off ./test/internal/conformance -run Page -update

.PHONY: integration
integration: UPDATE ?= -update
integration: deps ## the integration tests of scheduling that Kubernetes publishes, at RELEASE (1.24, 1.29, 1.34 and the newest), as they are and with a portable plugin, in ROUNDS (3), which are added to the recorded ones; those of scheduler-plugins with the bundled plugins; writes docs/conformance.md; takes hours
	RELEASE='$(RELEASE)' ROUNDS='$(ROUNDS)' go test -count=1 -timeout 12h -tags releases -v -run '$(or $(RUN),.)' ./test/binary/integration $(UPDATE)
	go test -vet=off ./test/internal/conformance -run Page $(UPDATE)

.PHONY: test-matrix
test-matrix: deps ## every release in versions/releases.txt: build, image, flags, and configurations as its own scheduler reads them; GO=newest compiles with that Go
	PMK_SCHED_GO=$(GO) go test -p 1 -count=1 -timeout 100m -tags matrix -v ./test/binary/matrix ./test/binary/conversion

.PHONY: test-adapters
test-adapters: ## one portable plugin in the scheduling framework of every release (compiles 18 schedulers)
	go test -count=1 -timeout 120m -tags adapters ./test/binary/adapters

.PHONY: test-browser
test-browser: site ## the web pages of simulations and of the documentation in Chromium, without network; installs 400 MB of Debian packages if there is none (root)
	@hack/deps.sh 'chromium chromium'
	go test -count=1 -tags browser -bench . -benchtime 5x ./test/browser/...

# facts ends with 3 if a table differs; the transcript is compiled all the same.
.PHONY: facts
facts: ## compare every table with the source of RELEASE (v1.38.0) and print the rows to add; compile the adapter's transcript for it, unless COMPILE=no
	@mkdir -p bin && go build -ldflags=-w -o bin/facts ./hack/facts
	@status=0; bin/facts $(RELEASE) || status=$$?; [ $$status = 0 ] || [ $$status = 3 ] || exit $$status; \
	[ "$(COMPILE)" = no ] || RELEASE=$(RELEASE) go test -count=1 -timeout 60m -tags adapters ./test/binary/adapters || exit; \
	exit $$status

.PHONY: fuzz
fuzz: ## every parser of input that others write, FUZZTIME each (5m)
	hack/fuzz.sh

.PHONY: soak
soak: deps build ## a scheduler and an extender under 50 pods a second for SOAK (60m) do not grow; a shadow agrees about 1,000 pods, an extender withstands 200 hostile clients, a scheduler hostile tenants, 10 minutes each (root)
	SOAK=10m PMK_SCHED_TEST_EXTENDER=$(CURDIR)/bin/pmk-extender go test -count=1 -timeout 30m -run TestSchedulerGetsThroughAFlood -v ./scheduler/extender
	SHADOW=10m go test -count=1 -timeout 30m -tags cases -run TestShadow -v ./test/apiserver/shadow
	TENANT=10m go test -count=1 -timeout 90m -tags cases -run TestHostileTenantsHarmNoOne -v ./test/apiserver/plugins
	hack/with-labs.sh go test -count=1 -timeout 3h -tags soak -v ./test/lab/soak

.PHONY: mutants
mutants: ## change N (200) places of the code, drawn with SEED, one at a time: how many changes no unit test notices
	go run ./hack/mutants -n $(or $(N),200) -seed $(or $(SEED),1) ./api/... ./internal/... ./profiles/... ./rbac ./scheduler/adapter ./scheduler/plugins/... ./versions

.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities in what the programs call; needs the vulnerability database of Go
	@mkdir -p bin && GOBIN=$(CURDIR)/bin go install golang.org/x/vuln/cmd/govulncheck@v1.1.4
	@bin/govulncheck ./cmd/pmk-sched ./cmd/pmk-lab ./cmd/pmk-extender >bin/vulnerabilities.txt 2>&1; status=$$?; cat bin/vulnerabilities.txt; \
	if grep -q '^govulncheck: fetching vulnerabilities' bin/vulnerabilities.txt; then echo 'NOT CHECKED: the vulnerability database cannot be read'; else exit $$status; fi

.PHONY: bench
bench: bench-code bench-clusters ## the numbers in README.md and docs/: throughput, failover, plugins, extenders, time without a scheduler (root)

.PHONY: bench-code
bench-code: ## the benchmarks that need no cluster
	go test -run '^$$' -bench . -count=1 ./scheduler/... ./internal/cluster/inspect ./examples/targetload

.PHONY: bench-clusters
bench-clusters: deps build ## the benchmarks on API servers and labs; PACKAGES=./test/bench/tune for some (root)
	hack/with-labs.sh go test -p 1 -run '^$$' -bench . -benchtime 1x -count=1 -timeout 8h $(or $(PACKAGES),./test/bench/... ./test/lab/replace)

.PHONY: fgd-table
fgd-table: deps ## GPUs allocated of the FGD authors' pod lists by kube-scheduler RELEASE (v1.24.3 and the newest): SEEDS (42 to 51), SIDES (default mostallocated gpupacking), every EVERYth node (1); records results on all nodes for the page of GPUPacking; takes hours (root)
	EVERY='$(or $(EVERY),1)' RELEASE='$(or $(RELEASE),v1.24.3 $(shell grep -v '^\#' versions/releases.txt | head -n 1))' GOGC=$${GOGC:-400} \
	go test -vet=off -ldflags=-w -count=1 -run '^$$' -bench AllocatedGPUs -benchtime 1x -timeout 48h -v ./test/bench/gpus -update
	go test -vet=off ./test/internal/gputable -run Page -update

.PHONY: golden
golden: ## rewrite the golden files; read the diff before you commit it
	go test $(addprefix ./,$(GOLDENS)) -update

.PHONY: release
release: bin/nfpm ## archives, packages, images and manifests of VERSION with checksums in dist/
	@VERSION='$(VERSION)' hack/release.sh

.PHONY: site
site: bin/hugo ## write the documentation as web pages, which work from disk with search, into dist/site/
	@rm -rf dist/site
	bin/hugo --config hack/site/hugo.toml --destination $(CURDIR)/dist/site --cacheDir $(CURDIR)/bin/hugo-cache --noBuildLock --panicOnWarning --quiet
	@echo dist/site/index.html

.PHONY: clean
clean: ## remove bin/ and dist/
	rm -rf bin dist
