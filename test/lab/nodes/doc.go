// Package nodes tests schedulers on a cluster with three control-plane nodes that kubeadm makes. It needs the build tag labs.
package nodes
