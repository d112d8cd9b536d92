#!/usr/bin/env bash
# Lets this machine run as many labs at once as the tests do: each holds some twenty inotify instances, and the kernel's default
# of 128 for a user is enough for four.
set -euo pipefail

limit=/proc/sys/fs/inotify/max_user_instances
wanted=512
if [ -w "$limit" ] && [ "$(cat "$limit")" -lt "$wanted" ]; then
	echo "raising fs.inotify.max_user_instances from $(cat "$limit") to $wanted until the next boot"
	echo "$wanted" >"$limit"
fi
