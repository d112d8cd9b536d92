#!/usr/bin/env bash
# Writes docs/images/first-run.svg: what a terminal shows when the manifest of Platform9's article becomes a scheduler, on a
# lab of this run (root). Lines are cut at 100 columns; most are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

lab=recording
dir=$(mktemp -d)
trap 'bin/pmk-lab down --name $lab >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
bin/pmk-lab up --name $lab --branch v1.24.3 --layout pmk
cp test/testdata/article/manifest-as-printed.yaml "$dir/my-scheduler.yaml"

# record COMMAND PATTERN prints the command, the lines of its output that match, and its seconds.
record() {
	local start=$EPOCHREALTIME
	echo "$ $1"
	(cd "$dir" && PATH=$OLDPWD/bin:$PATH "$OLDPWD/bin/pmk-lab" exec --name $lab -- env PATH="$OLDPWD/bin:$PATH" sh -ec "$1") 2>&1 |
		awk -v pattern="$2" '$0 ~ pattern {if (/^(changed|kept|removed) /) gsub(/   +/, "  "); print}'
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {if (b - a > 2) printf "# %.0f seconds\n", b - a}'
}

{
	record 'pmk-sched migrate -f my-scheduler.yaml --apply --yes' \
		'^changed +(configuration +line 51|image)|^(kept +name|removed)|^✓ (check|apply|wait|verify)|is deployed'
	record 'pmk-sched status my-scheduler' '^(SCHEDULER|my-scheduler)'
} >"$dir/lines"

sed -E 's/^(.{99}).+$/\1…/' "$dir/lines" | awk '
	function escaped(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
	{line[NR] = $0}
	END {
		height = 18 * NR + 24
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 %d\" width=\"860\" role=\"img\">\n", height
		print "<title>The manifest of the article becomes a scheduler</title>"
		printf "<rect width=\"860\" height=\"%d\" rx=\"6\" fill=\"#14191f\"/>\n", height
		print "<g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#c9d1da\">"
		for (i = 1; i <= NR; i++) {
			color = line[i] ~ /^\$/ ? " fill=\"#ffffff\" font-weight=\"bold\"" : line[i] ~ /^(✓|#)/ ? " fill=\"#7ee08c\"" : ""
			printf "<text xml:space=\"preserve\" x=\"14\" y=\"%d\"%s>%s</text>\n", 18 * i + 10, color, escaped(line[i])
		}
		print "</g>\n</svg>"
	}' >docs/images/first-run.svg
echo "docs/images/first-run.svg is written"
