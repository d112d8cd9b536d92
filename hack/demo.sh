#!/usr/bin/env bash
# From nothing to a custom scheduler, built from source, that takes its first pod on a real Kubernetes master.
# LAB, BRANCH, LAYOUT and NAME can be set in the environment.
set -Eeuo pipefail
cd "$(dirname "$0")/.."

lab=${LAB:-demo}
branch=${BRANCH:-v1.24.3}
layout=${LAYOUT:-pmk}
name=${NAME:-my-scheduler}
pmk_sched=$PWD/bin/pmk-sched

trap 'echo "the demo ended early; its lab, if it is up: bin/pmk-sched lab down --name $lab" >&2' ERR

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$*"; "$@"; }
on_master() { say "on the master: $*"; "$pmk_sched" lab exec --name "$lab" -- "$@"; }

if ! "$pmk_sched" lab status --name "$lab" >/dev/null 2>&1; then
	run "$pmk_sched" lab up --name "$lab" --branch "$branch" --layout "$layout"
fi
on_master "$pmk_sched" detect
on_master "$pmk_sched" build --branch "$branch" --busybox /bin/busybox --tag "localhost/$name:$branch" --load containerd
on_master "$pmk_sched" deploy --name "$name" --image "localhost/$name:$branch"
on_master "$pmk_sched" verify --name "$name"
on_master kubectl get pods -A -o wide

cat <<END

$name schedules beside the default scheduler. Go on:
  on the master   bin/pmk-sched lab exec --name $lab -- kubectl get pods -A
  use it          put "schedulerName: $name" into a pod's spec
  take it down    bin/pmk-sched lab down --name $lab
END
