#!/bin/sh
# Runs the kubelet of {{.What}} of lab {{.Name}} as kubeadm's unit for systemd does: when kubeadm has
# written its configuration, with kubeadm's flags, and again a second after it has exited.
config=/var/lib/kubelet/config.yaml flags=/var/lib/kubelet/kubeadm-flags.env
bootstrap=/etc/kubernetes/bootstrap-kubelet.conf kubeconfig=/etc/kubernetes/kubelet.conf
kubelet=
stop() {
	if [ -n "$kubelet" ]; then
		kill -TERM "$kubelet"
		wait "$kubelet"
	fi
	exit 0
}
trap stop TERM
configured() { [ -s $config ] && [ -s $flags ] && { [ -s $bootstrap ] || [ -s $kubeconfig ]; }; }
while :; do
	until configured; do sleep 0.2; done
	. $flags
	{{q .Kubelet}} --bootstrap-kubeconfig=$bootstrap --kubeconfig=$kubeconfig --config=$config $KUBELET_KUBEADM_ARGS &
	kubelet=$!
	wait "$kubelet"
	kubelet=
	sleep 1
done
