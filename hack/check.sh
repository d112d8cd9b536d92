#!/usr/bin/env bash
# The gate before every commit: formatting, lint with vet, vet of files with a build tag, module
# files, import rules, goldens. Arguments are the packages with golden files, if they are to be tested.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
	local name=$1 start=$SECONDS
	shift
	"$@" || { echo "$name failed after $((SECONDS - start))s"; return 1; }
	printf '%-10sok  %ds\n' "$name" $((SECONDS - start))
}

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
	[ -z "$files" ] || { echo "not formatted, run gofmt -w on:"; echo "$files"; return 1; }
}

shell() { local f; for f in hack/*.sh .ci/run; do bash -n "$f"; done; }

# golangci-lint vets every file without a tag. It is compiled from the versions in hack/tools/go.mod.
lint() {
	mkdir -p bin
	go -C hack/tools build -ldflags=-w -o "$PWD/bin/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...
}

# actionlint needs other versions of its modules than golangci-lint.
workflows() {
	go -C hack/tools/actionlint build -ldflags=-w -o "$PWD/bin/actionlint" github.com/rhysd/actionlint/cmd/actionlint
	bin/actionlint -shellcheck= -pyflakes= # these two are not on every machine
}

# Each tag alone, as the tests run: a file of one tag must not need a file of another. Only the
# packages that have files of the tag are vetted.
tagged() {
	local tag
	for tag in $(git grep --untracked -hE '^//go:build ' -- '*_test.go' | grep -oE '[a-z]+' | sort -u | grep -vxE 'go|build|linux'); do
		git grep --untracked -lE "^//go:build .*\b$tag\b" -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|' |
			xargs go vet -tags "$tag"
	done
}

tidy() { local m; for m in . hack/tools hack/tools/actionlint hack/tools/helm hack/tools/schema; do go -C "$m" mod tidy -diff; done; }

# The JSON schemas and the CustomResourceDefinition are generated from api/v1alpha1.
schema() {
	go -C hack/tools/schema build -ldflags=-w -o "$PWD/bin/schema" .
	bin/schema | diff api/v1alpha1/schema.json - && bin/schema SchedulingTest | diff api/v1alpha1/schema-test.json - &&
		bin/schema crd | diff api/v1alpha1/crd.yaml - || { echo "run: make schema"; return 1; }
}

step gofmt formatted
step shell shell
step width hack/width.sh
step prose hack/prose.sh
step lint lint
step workflows workflows
step tags tagged
step tidy tidy
step schema schema
step rules go test -vet=off .
[ $# -eq 0 ] || step goldens go test -vet=off "$@"
