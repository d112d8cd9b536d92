#!/usr/bin/env bash
# From nothing to a web page that shows what a scheduler that packs would do with the pods of a cluster: the scheduler of BRANCH, compared with
# the default scheduler of the release, on a generated snapshot. REPORT and BRANCH can be set in the environment.
set -Eeuo pipefail
cd "$(dirname "$0")/.."

branch=${BRANCH:-v1.24.3}
report=${REPORT:-foresight.html}
pmk_sched=$PWD/bin/pmk-sched

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$*"; "$@"; }

# node NAME TYPE CPU GIB ZONE
node() {
	cat <<END
---
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {kubernetes.io/hostname: $1, node.kubernetes.io/instance-type: $2, topology.kubernetes.io/zone: $5}}
status: {allocatable: {cpu: "$3", memory: $4Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
END
}

# pod NAMESPACE NAME NODE CPU MEMORY DAY [METADATA]: a pod without a node is pending
pod() {
	local phase=Running
	[ -n "$3" ] || phase=Pending
	cat <<END
---
apiVersion: v1
kind: Pod
metadata: {namespace: $1, name: $2, creationTimestamp: "2026-01-0$6T00:00:00Z"${7:+, $7}}
spec:
  nodeName: "$3"
  containers: [{name: main, image: example.com/$1, resources: {requests: {cpu: "$4", memory: $5}}}]
status: {phase: $phase}
END
}

# 16 small nodes and 8 large ones in three zones. Pods are spread over them, as the default scheduler does it; a large one finds no room.
cluster() {
	local i names=() zones=(a b c)
	for i in $(seq 0 23); do
		local name type=m5.2xlarge cpu=8
		name=$(printf 'worker-%02d' "$i")
		[ $((i % 3)) != 2 ] || { type=m5.4xlarge cpu=16; names+=("$name"); }
		names+=("$name")
		node "$name" "$type" "$cpu" $((cpu * 4)) "zone-${zones[i / 8]}"
		pod kube-system "agent-$i" "$name" 100m 200Mi 1 'ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: agent, controller: true}]'
	done
	for i in $(seq 0 63); do pod shop "web-$i" "${names[i % 32]}" 500m 1Gi 2; done
	for i in $(seq 0 47); do pod shop "api-$i" "${names[(i * 5) % 32]}" 1 3Gi 3; done
	for i in $(seq 0 31); do pod search "index-$i" "${names[i % 32]}" 1500m 6Gi 4; done
	pod research training-0 "" 15 20Gi 5
}

cat >"$dir/packer.yaml" <<'END'
apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: packer}
spec: {configuration: {preset: binpack}}
END

cluster >"$dir/cluster.yaml"
run "$pmk_sched" snapshot --from "$dir/cluster.yaml" --to-file "$dir/cluster.tar.gz"
run "$pmk_sched" simulate replace-all --snapshot "$dir/cluster.tar.gz" --branch "$branch" -f "$dir/packer.yaml" --against default \
	--price m5.2xlarge=0.384 --price m5.4xlarge=0.768 --report "$report"

cat <<END

The page is in $report; it needs no network. Next:
  your cluster    bin/pmk-sched simulate replace-all --preset binpack --against default --report $report
  its snapshot    bin/pmk-sched snapshot --to-file cluster.tar.gz
END
