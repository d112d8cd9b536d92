#!/usr/bin/env bash
# From nothing to a custom scheduler that takes its first pod on a real Kubernetes master: the image of the default
# scheduler with another configuration or, with WITH=PLUGIN, a kube-scheduler compiled with the plugin.
# LAB, BRANCH, LAYOUT, MASTERS, NAME, PRESET and WITH can be set in the environment.
set -Eeuo pipefail
cd "$(dirname "$0")/.."

lab=${LAB:-demo}
branch=${BRANCH:-v1.24.3}
layout=${LAYOUT:-pmk}
masters=${MASTERS:-1}
name=${NAME:-my-scheduler}
preset=${PRESET:-binpack}
with=${WITH:-}
pmk_sched=$PWD/bin/pmk-sched
pmk_lab=$PWD/bin/pmk-lab

trap 'echo "the demo ended early; its lab, if it is up: bin/pmk-lab down --name $lab" >&2' ERR

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$*"; "$@"; }
on_node() { say "on node $1: ${*:2}"; "$pmk_lab" exec --name "$lab" --node "$1" -- "${@:2}"; }
on_master() { say "on the master: $*"; "$pmk_lab" exec --name "$lab" -- "$@"; }

if ! "$pmk_lab" status --name "$lab" >/dev/null 2>&1; then
	run "$pmk_lab" up --name "$lab" --branch "$branch" --layout "$layout" --masters "$masters"
fi
on_master "$pmk_sched" detect
if [ -z "$with" ]; then
	image=$("$pmk_lab" exec --name "$lab" -- kubectl -n kube-system get pods \
		-o jsonpath='{.items[*].spec.containers[?(@.name=="kube-scheduler")].image}')
	image=${image%% *} # of the first control-plane node
	on_master "$pmk_sched" deploy --name "$name" --image "$image" --preset "$preset"
else
	image=localhost/$name:$branch
	# The image is not in a registry: every node that may run the scheduler needs it.
	for node in $("$pmk_lab" exec --name "$lab" -- kubectl get nodes -l 'type!=kwok' -o jsonpath='{.items[*].metadata.name}'); do
		on_node "$node" "$pmk_sched" build --branch "$branch" --with "$with" --busybox /bin/busybox --tag "$image" --load containerd
	done
	on_master "$pmk_sched" deploy --name "$name" --image "$image"
fi
on_master "$pmk_sched" verify --name "$name"
on_master kubectl get pods -A -o wide

cat <<END

$name schedules alongside the default scheduler. Go on:
  on the master   bin/pmk-lab exec --name $lab -- kubectl get pods -A
  use it          put "schedulerName: $name" into a pod's spec
  add a plugin    make demo WITH=builtin:timestamp
  take it down    bin/pmk-lab down --name $lab
END
