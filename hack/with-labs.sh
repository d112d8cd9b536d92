#!/usr/bin/env bash
# Runs tests with a directory for the labs that they share, and takes the labs down afterwards, also when the tests fail.
set -euo pipefail
cd "$(dirname "$0")/.."

# A lab uses some twenty inotify instances; the kernel's default of 128 for each user is enough for four.
limit=/proc/sys/fs/inotify/max_user_instances
wanted=512
if [ -w "$limit" ] && [ "$(cat "$limit")" -lt "$wanted" ]; then
	echo "raising fs.inotify.max_user_instances from $(cat "$limit") to $wanted until the next boot"
	echo "$wanted" >"$limit"
fi

labs=$(mktemp -d /var/tmp/pmk-sched-labs-XXXXXX) # /tmp may be in memory, which labs would fill
export PMK_SCHED_TEST_LABS=$labs

take_down() {
	local lab
	for lab in "$labs"/*/; do
		[ ! -d "$lab" ] || PMK_SCHED_LAB_DIR=$labs bin/pmk-sched lab down --name "$(basename "$lab")"
	done
	rm -rf "$labs"
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$@"
