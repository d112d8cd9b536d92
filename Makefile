# Everything a newcomer types. `make help` lists it.

VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# Tests with labs, the longest first; those that have the most labs, replace and e2e, do not meet. On a machine with too many
# clusters, they lose their leases.
LABS      := replace lifecycle demo plugins extender install
QUICK      = $(shell go list ./... 2>/dev/null | grep -v '/test/')

# The version comes from LDFLAGS; git refuses to tell more in a clone that belongs to another user.
export GOFLAGS := $(strip $(shell go env GOFLAGS 2>/dev/null) -buildvcs=false)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | awk -F'\t' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: build
build: ## compile pmk-sched into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/pmk-sched ./cmd/pmk-sched

.PHONY: deps
deps: ## install the Debian packages that the lab and the tests need (only what is missing; root)
	@hack/deps.sh

.PHONY: demo
demo: deps build ## from nothing to a custom scheduler that takes its first pod, on a real cluster on this machine (root)
	@hack/demo.sh

.PHONY: check
check: ## gofmt, vet, lint, import rules, tidy, goldens: quick, before every commit
	@hack/check.sh

.PHONY: unit
unit: ## the quick tests: unit, golden, command line, fake module proxy, registry
	go test $(QUICK)

.PHONY: test
test: deps check unit build ## everything at v1.24.3: the quick tests, then real images, API servers and labs (root)
	@hack/labs-at-once.sh
	go test -p 3 -count=1 -timeout 40m -parallel 64 ./test/binary/... ./test/apiserver/...
	go test -p 2 -count=1 -timeout 70m -parallel 64 $(LABS:%=./test/lab/%)

.PHONY: test-releases
test-releases: deps build dist ## what takes longer: other releases of Kubernetes, other platforms of pmk-sched (root)
	go test -p 1 -count=1 -timeout 60m -tags releases ./test/binary/releases
	go test -p 1 -count=1 -timeout 120m -tags releases ./test/binary/with
	go test -p 1 -count=1 -timeout 120m -tags releases -v ./test/lab/matrix

.PHONY: test-plugin-lab
test-plugin-lab: deps ## plugins at work on real masters of five releases from 1.24 to 1.37, and those of another project (root)
	go test -p 1 -count=1 -timeout 4h -tags pluginlab -v ./test/lab/plugins

.PHONY: test-lab-matrix
test-lab-matrix: deps ## real masters of eleven releases from 1.20 to 1.37, one after the other: the whole job on each, and an upgrade under it (root)
	go test -p 1 -count=1 -timeout 6h -tags labmatrix -v ./test/lab/matrix

.PHONY: test-matrix
test-matrix: deps ## every release in versions/releases.txt: built, packed, asked what it takes; conversions judged by the releases themselves
	go test -p 1 -count=1 -timeout 100m -tags matrix -v ./test/binary/matrix ./test/binary/conversion

.PHONY: test-adapters
test-adapters: ## one portable plugin through the scheduling framework of every release (compiles 18 schedulers)
	go test -count=1 -timeout 120m -tags adapters ./test/binary/adapters

.PHONY: test-replace
test-replace: deps build ## replacing the default scheduler on other releases than v1.24.3: PMK's v1.21.3 and the newest (root)
	@hack/labs-at-once.sh
	go test -p 1 -count=1 -timeout 90m -tags replace -run OtherReleases -bench OtherReleases -benchtime 1x ./test/lab/replace

.PHONY: test-extender
test-extender: deps ## extenders on schedulers of 1.22 (also with a Policy), 1.24, 1.33 and 1.37: placements, faults, and their life on a real master (root)
	go test -p 1 -count=1 -timeout 120m -tags releases -v ./test/apiserver/extender/... ./test/lab/extender

.PHONY: bench
bench: deps build ## throughput, side by side: the article's scheduler and ours (root)
	go test -p 1 -run '^$$' -bench . -benchtime 1x -count=1 -timeout 40m ./test/bench/... ./test/lab/replace

.PHONY: golden
golden: ## write the golden files anew; read the diff before committing it
	go test ./profiles ./rbac ./internal/build ./internal/manifest ./internal/install ./internal/lab -update

.PHONY: dist
dist: ## cross-compile pmk-sched for linux and darwin, amd64 and arm64, with manual pages and checksums, into dist/
	@rm -rf dist && mkdir -p dist
	@set -e; for p in $(PLATFORMS); do \
		out=dist/pmk-sched_$(VERSION)_$${p%/*}_$${p#*/}; \
		echo "$$out"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -ldflags '$(LDFLAGS)' -o $$out ./cmd/pmk-sched; \
	done
	@go run ./cmd/pmk-sched man dist/man && tar -C dist -czf dist/pmk-sched_$(VERSION)_man.tar.gz man && rm -r dist/man
	@cd dist && sha256sum pmk-sched_* > SHA256SUMS && cat SHA256SUMS

.PHONY: clean
clean: ## remove bin/ and dist/
	rm -rf bin dist
