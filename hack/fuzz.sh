#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (5m by default), one after the other. A failure leaves its input in testdata/fuzz of the package.
# Making an interesting input smaller may take 2s of that, not a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -rl --include='*_test.go' '^func Fuzz' cmd internal profiles rbac scheduler versions | xargs -n 1 dirname | sort -u | while read -r package; do
	grep -ho '^func Fuzz[A-Za-z]*' "$package"/*_test.go | sed 's/^func //' | while read -r target; do
		echo "== $package $target"
		go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-5m}" -fuzzminimizetime 2s
	done
done
