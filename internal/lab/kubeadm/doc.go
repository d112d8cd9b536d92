// Package kubeadm renders what a lab gives to kubeadm: configuration in the API of a release, and
// command lines. It does no I/O.
package kubeadm
