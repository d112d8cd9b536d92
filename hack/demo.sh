#!/usr/bin/env bash
# From nothing to two custom schedulers that take their first pods on a real Kubernetes master: one of a preset with the
# image of the default scheduler, and one that is compiled with the plugin WITH, on busybox.
# LAB, BRANCH, LAYOUT, MASTERS, PRESET, WITH and NAME, the name of the second one, can be set in the environment.
set -Eeuo pipefail
cd "$(dirname "$0")/.."

lab=${LAB:-demo}
branch=${BRANCH:-v1.24.3}
layout=${LAYOUT:-pmk}
masters=${MASTERS:-1}
name=${NAME:-my-scheduler}
preset=${PRESET:-binpack}
with=${WITH:-builtin:timestamp}
pmk_sched=$PWD/bin/pmk-sched
pmk_lab=$PWD/bin/pmk-lab

trap 'echo "the demo ended early; its lab, if it is up: bin/pmk-lab down --name $lab" >&2' ERR

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$*"; "$@"; }
on_node() { say "on node $1: ${*:2}"; "$pmk_lab" exec --name "$lab" --node "$1" -- "${@:2}"; }
on_master() { say "on the master: $*"; "$pmk_lab" exec --name "$lab" -- "$@"; }
kubectl() { "$pmk_lab" exec --name "$lab" -- kubectl "$@"; }

# part NAME notes the seconds since the part before.
SECONDS=0
parts=
part() {
	parts+=$(printf '  %4d s  %s' "$SECONDS" "$1")$'\n'
	SECONDS=0
}

if ! "$pmk_lab" status --name "$lab" >/dev/null 2>&1; then
	run "$pmk_lab" up --name "$lab" --branch "$branch" --layout "$layout" --masters "$masters"
fi
on_master "$pmk_sched" detect
part "a cluster of $branch"

on_master "$pmk_sched" deploy --name "$preset" --preset "$preset"
on_master "$pmk_sched" verify --name "$preset"
part "preset $preset, without a build, and its first pod"

image=localhost/$name:$branch
# The image is not in a registry: every node that may run the scheduler needs it.
for node in $(kubectl get nodes -l 'type!=kwok' -o jsonpath='{.items[*].metadata.name}'); do
	on_node "$node" "$pmk_sched" build --branch "$branch" --with "$with" --busybox /bin/busybox --tag "$image" --load containerd
done
part "build $branch with $with"
on_master "$pmk_sched" deploy --name "$name" --image "$image"
on_master "$pmk_sched" verify --name "$name"
part "deploy it, and its first pod"
on_master kubectl get pods -A -o wide

cat <<END

$preset and $name schedule alongside the default scheduler:
$parts
Go on:
  on the master   bin/pmk-lab exec --name $lab -- kubectl get pods -A
  use one         put "schedulerName: $preset" into a pod's spec
  take it down    bin/pmk-lab down --name $lab
END
