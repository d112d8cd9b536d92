// Package nodes tests schedulers on clusters with three control-plane nodes: kubeadm's clusters,
// and clusters with the layout of PMK. It needs the build tag labs.
package nodes
