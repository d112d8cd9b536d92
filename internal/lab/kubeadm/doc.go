// Package kubeadm renders the input of kubeadm for a lab: configuration in the API of a release,
// and command lines. It does no I/O.
package kubeadm
