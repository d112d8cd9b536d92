#!/usr/bin/env bash
# Runs a `go test` command and then prints the seconds of each package, the longest first. They are
# kept in bin/seconds-NAME.txt: hack/seconds.sh NAME COMMAND…
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1
shift
mkdir -p bin
status=0
"$@" 2>&1 | tee "bin/tests-$name.log" || status=$?
awk '$1 == "ok" || $1 == "FAIL" && NF > 2 {sub("s$", "", $3); printf "%8.1f  %-4s  %s\n", $3, $1, $2}' "bin/tests-$name.log" |
	sort -rn >"bin/seconds-$name.txt"
printf '\nseconds by package (bin/seconds-%s.txt):\n' "$name"
cat "bin/seconds-$name.txt"
exit "$status"
