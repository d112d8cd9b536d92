#!/usr/bin/env bash
# The gate before every commit: formatting, vet, lint, module files, import rules, goldens.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '%-10s' "$1"; shift; local start=$SECONDS; "$@"; echo "ok  $((SECONDS - start))s"; }

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
	[ -z "$files" ] || { echo "not formatted, run gofmt -w on:"; echo "$files"; return 1; }
}

lint() {
	mkdir -p bin
	go -C hack/tools build -o "$PWD/bin/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...
}

tidy() { go mod tidy -diff; go -C hack/tools mod tidy -diff; go -C hack/tools/helm mod tidy -diff; }

shell() { local f; for f in hack/*.sh .ci/run; do bash -n "$f"; done; }

# Each tag alone, as the tests run: a file of one tag must not need a file of another.
tagged() {
	local tag
	for tag in releases matrix adapters browser faults labs soak; do go vet -tags "$tag" ./test/...; done
}

step gofmt formatted
step shell shell
step vet go vet ./...
step tags tagged
step lint lint
step tidy tidy
step rules go test .
# shellcheck disable=SC2086 # a list of packages
step goldens go test ${GOLDENS:?is set by make check}
