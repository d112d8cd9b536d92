//go:build linux && !faults

package install

// credentials are each kind once.
var credentials = []subject{{"pmk", "node-inline"}, {"kubeadm", "hostpath"}, {"kubeadm", "serviceaccount"}}
