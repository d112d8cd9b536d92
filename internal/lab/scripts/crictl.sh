#!/bin/sh
# The calls of crictl that "kubeadm upgrade" of 1.30 and before makes, with containerd's own client.
set -eu
socket=/run/containerd/containerd.sock
while :; do
	case ${1-} in
	-r) socket=${2#unix://}; shift 2 ;;
	-*) shift ;;
	*) break ;;
	esac
done
call=${1-} image=${2-}
containerd() { ctr --address "$socket" --namespace k8s.io "$@"; }
case $call in
info) containerd version ;;
inspecti) [ -n "$(containerd images list --quiet "name==$image")" ] ;;
pull) containerd images pull "$image" ;;
*) echo "crictl $call: a lab does not support this call" >&2; exit 1 ;;
esac
