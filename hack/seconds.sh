#!/usr/bin/env bash
# Runs a `go test` command and then prints the seconds of each package, the longest first. They are
# kept in bin/tests.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p bin
status=0
"$@" 2>&1 | tee bin/tests.log || status=$?
awk '$1 == "ok" || $1 == "FAIL" && NF > 2 {sub("s$", "", $3); printf "%8.1f  %-4s  %s\n", $3, $1, $2}' bin/tests.log | sort -rn >bin/tests.txt
printf '\nseconds by package (bin/tests.txt):\n'
cat bin/tests.txt
exit "$status"
