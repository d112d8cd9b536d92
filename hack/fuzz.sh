#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (5m by default), one after the other; `hack/fuzz.sh list` only
# prints their packages and names. A failure leaves its input in testdata/fuzz of the package. The
# time to make an interesting input smaller is limited to 2s; go test's default is a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

list() {
	git grep --untracked -E '^func Fuzz[A-Za-z]*\(' -- '*_test.go' |
		sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z]*)\(.*|\1 \2|' | sort
}

if [ "${1:-}" = list ]; then
	list
	exit
fi
list | while read -r package target; do
	echo "== $package $target"
	go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-5m}" -fuzzminimizetime 2s </dev/null
done
