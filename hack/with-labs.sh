#!/usr/bin/env bash
# Runs a command that tests, with a directory for the labs that its tests use, and takes the labs down
# afterwards, also when the command fails. The labs in LABS, such as shared-pmk or exclusive-kubeadm,
# start at once, in the background; the tests wait for them.
set -euo pipefail
cd "$(dirname "$0")/.."

# A lab uses some twenty inotify instances; the kernel's default of 128 for each user is enough for
# four.
limit=/proc/sys/fs/inotify/max_user_instances
wanted=512
if [ -w "$limit" ] && [ "$(cat "$limit")" -lt "$wanted" ]; then
	echo "raising fs.inotify.max_user_instances from $(cat "$limit") to $wanted until the next boot"
	echo "$wanted" >"$limit"
fi

labs=$(mktemp -d /var/tmp/pmk-sched-labs-XXXXXX) # /tmp may be in memory, which labs would fill
export PMK_SCHED_TEST_LABS=$labs

# start NAME LAYOUT starts a lab as Node.bringUp in test/internal/labs does, which waits for the lock.
# The lab's processes must not inherit the lock.
start() {
	local result=failed
	exec {lock}>"$labs/$1.up"
	flock "$lock"
	if [ ! -e "$labs/$1.done" ] && [ ! -e "$labs/stop" ]; then
		if PMK_SCHED_LAB_DIR=$labs bin/pmk-lab up --name "$1" --branch v1.24.3 --layout "$2" --nodes 3 \
			>"$labs/$1.out" 2>&1 {lock}>&-; then
			result=done
		fi
		mv "$labs/$1.out" "$labs/$1.$result"
	fi
	exec {lock}>&-
}

start_all() {
	local name
	for name in $LABS; do start "$name" "${name#*-}"; done
}

take_down() {
	local lab
	if [ -n "${starting:-}" ]; then
		touch "$labs/stop"
		pkill -P "$starting" || true # a lab that is starting undoes what it did
		wait "$starting" || true
	fi
	for lab in "$labs"/*/; do
		[ ! -d "$lab" ] || PMK_SCHED_LAB_DIR=$labs bin/pmk-lab down --name "$(basename "$lab")"
	done
	rm -rf "$labs"
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -n "${LABS:-}" ]; then
	start_all &
	starting=$!
fi
"$@"
