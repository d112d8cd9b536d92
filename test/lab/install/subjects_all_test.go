//go:build linux && faults

package install

// credentials are each kind on each layout.
var credentials = []subject{
	{"pmk", "node-inline"}, {"pmk", "hostpath"}, {"pmk", "serviceaccount"},
	{"kubeadm", "node-inline"}, {"kubeadm", "hostpath"}, {"kubeadm", "serviceaccount"},
}
