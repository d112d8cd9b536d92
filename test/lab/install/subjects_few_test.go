//go:build linux && cases && !faults

package install

// credentials are each kind once.
var credentials = []subject{{"pmk", "node-inline"}, {"kubeadm", "hostpath"}, {"kubeadm", "serviceaccount"}}
