#!/usr/bin/env bash
# Compiles what the tests of `make test` run, in order, so that no test waits for a compiler. What is in
# the build cache costs nothing. Tests of `build` itself compile more, with plugins of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

branch=v1.24.3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

run() {
	printf '$ %s\n' "$*" >&2
	"$@"
}

for layout in pmk kubeadm; do
	run bin/pmk-lab up --programs-only --name programs --branch $branch --layout $layout --nodes 3
done

run bin/pmk-sched build extender --binary "$dir/pmk-extender" >/dev/null

# Each line has the plugins of one scheduler.
while read -r plugins; do
	with=()
	for plugin in $plugins; do with+=(--with "$plugin"); done
	run bin/pmk-sched build --branch $branch "${with[@]}" --binary "$dir/kube-scheduler" >/dev/null
done <<'END'
builtin:blockall
builtin:timestamp
builtin:blockall builtin:timestamp builtin:loadaware builtin:networkaware
builtin:elasticquota builtin:numaaware
./test/apiserver/plugins/testdata/panics builtin:loadaware builtin:coscheduling builtin:elasticquota builtin:gpupacking builtin:numaaware builtin:networkaware builtin:costaware builtin:otherschedulers
END
