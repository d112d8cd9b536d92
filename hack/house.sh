#!/usr/bin/env bash
# Prints how large this tree is, as one row for each measure, to compare two commits:
#
#   hack/house.sh
#
# Product code is the Go code that is not a test and not below test/ or hack/. Seconds are those of
# the last `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

row() { printf '%-34s %8s\n' "$1" "$2"; }

files() { git ls-files '*.go' | grep -v -e '_test\.go$' -e '^test/' -e '^hack/' -e '/testdata/'; }

packages() { files | xargs -n 1 dirname | sort -u; }

# imports prints a line PACKAGE IMPORTER for each import of product code.
imports() {
	packages | sed 's|^|./|' | xargs go list -f '{{$p := .ImportPath}}{{range .Imports}}{{.}} {{$p}}
{{end}}' | grep "^$(go list -m)"
}

# exported counts top-level names: functions, methods, types, and the names of const and var blocks.
exported() {
	files | xargs awk '
		FNR == 1 {block = 0}
		/^(const|var|type) \($/ {block = 1; next}
		/^\)$/ {block = 0}
		block && /^\t[A-Z][A-Za-z0-9]*( |,|$)/ || /^(const|var|type) [A-Z]/ || /^func (\([^)]*\) )?[A-Z]/ {n++}
		END {print n}'
}

# functions prints the lines of each function, sorted.
functions() { files | xargs awk '/^func / {start = FNR} /^}/ && start {print FNR - start + 1; start = 0}' | sort -n; }

percentile() { functions | awk -v p="$1" '{all[NR] = $1} END {print all[int(NR * p / 100 + 0.5)]}'; }

# references prints the help of all commands.
references() { cat docs/reference.md docs/reference-lab.md; }

row 'product lines' "$(files | xargs cat | wc -l)"
row 'test lines' "$(git ls-files '*_test.go' 'test/*.go' | sort -u | xargs cat | wc -l)"
row packages "$(packages | wc -l)"
row 'packages with one importer' "$(imports | awk '{n[$1]++} END {for (p in n) c += n[p] == 1; print c + 0}')"
row 'exported names' "$(exported)"
row 'lines of a function, p50' "$(percentile 50)"
row 'lines of a function, p90' "$(percentile 90)"
row 'commands and subcommands' "$(references | grep -c '^## pmk-[a-z]* ')"
row 'flags of all commands' "$(references | grep -c '^  --')"
row 'different flags' "$(references | grep -o '^  --[a-z-]*' | sort -u | wc -l)"
# Pages that a test or make writes are not counted.
row 'words of written docs' "$(cat README.md CONTRIBUTING.md $(ls docs/*.md |
	grep -vxE 'docs/(reference|reference-lab|file|findings|status|conformance)\.md') | wc -w)"
row 'seconds of make test' "$(awk '{s += $1} END {print int(s)}' bin/seconds-*.txt 2>/dev/null || true)"
