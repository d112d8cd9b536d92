#!/usr/bin/env bash
# Runs the parts of hack/parts.txt, or those that are named, and records in docs/status.md when each
# last passed. A part that passed with the same files is not run again, so that the same command
# continues a run that was interrupted. The log of a part is bin/parts/NAME.log.
#
#   hack/parts.sh [PART…]
#   hack/parts.sh list
#
# Exit status: 0, 1 if a part failed, 2 if there is no such part.
set -euo pipefail
cd "$(dirname "$0")/.."

table=docs/status.md

parts() { grep -v '^#' hack/parts.txt; }

# same COMMIT reports whether the files of a commit are the ones of HEAD, the table apart.
same() { git diff --quiet "$1" HEAD -- . ":!$table" 2>/dev/null; }

clean() { [ -z "$(git status --porcelain -- . ":!$table")" ]; }

# column NAME N prints a column of a part's row.
column() { awk -F ' *[|] *' -v name="$1" -v n="$2" '$2 == name {print $(n + 1)}' "$table"; }

# record NAME COMMIT DATE TIME FAILED replaces the row of a part.
record() {
	local row="| $1 | $2 | $3 | $4 | $5 |" new
	new=$(mktemp "$table.XXXXXX")
	awk -F ' *[|] *' -v name="$1" -v row="$row" '$2 == name {print row; next} {print}' "$table" >"$new"
	chmod --reference="$table" "$new"
	mv "$new" "$table"
}

run() {
	local name=$1 start=$SECONDS took status=0 commit
	shift
	commit=$(git rev-parse --short=12 HEAD)
	mkdir -p bin/parts
	make --no-print-directory "$@" >"bin/parts/$name.log" 2>&1 || status=$?
	took=$(((SECONDS - start + 59) / 60))
	if [ "$status" = 0 ]; then
		echo "$name ok $took min"
	else
		echo "$name FAILED $took min, exit status $status; see bin/parts/$name.log"
	fi
	if ! clean; then
		echo "$name is not recorded: files differ from commit $commit"
	elif [ "$status" = 0 ]; then
		record "$name" "$commit" "$(date -u +%F)" "$took min" ""
	else
		record "$name" "$(column "$name" 2)" "$(column "$name" 3)" "$(column "$name" 4)" "$commit, $(date -u +%F)"
	fi
	return "$status"
}

if [ "${1:-}" = list ]; then
	parts | cut -d' ' -f1
	exit
fi
wanted=("$@")
[ $# -gt 0 ] || mapfile -t wanted < <(parts | cut -d' ' -f1)
for name in "${wanted[@]}"; do
	parts | grep -q "^$name " || { echo "no part $name: see hack/parts.txt" >&2; exit 2; }
done
failed=0
for name in "${wanted[@]}"; do
	read -r _ target packages < <(parts | grep "^$name ")
	passed=$(column "$name" 2)
	if [ -n "$passed" ] && clean && same "$passed" && [ -z "$(column "$name" 5)" ]; then
		echo "$name passed before, at commit $passed, in $(column "$name" 4)"
		continue
	fi
	run "$name" "$target" ${packages:+"$packages"} || failed=1
done
exit "$failed"
