// Package lab runs a real Kubernetes master of any supported release on this
// machine, without Docker and without touching the machine's own network,
// files or service manager.
//
// A lab is one node: a network, mount and host name namespace in which etcd,
// containerd, the kubelet, kube-proxy and, with fake workers, kwok run as plain
// processes, and the control plane runs as the static pods of the chosen
// layout. The folders that a node keeps in /etc/pf9, /etc/kubernetes,
// /var/lib/kubelet, /run and so on lie in the lab's own folder below root/ and
// are bound to their true places inside the mount namespace: a hostPath volume,
// the containerd socket and the static pod path are what they are on a real
// node.
//
// Every process of a lab is in control groups of the lab's own. Mounts, links
// and packet filter rules live in its namespaces and end with them. That is how
// Down finds all of it, even when Up was killed half-way.
//
// The binaries come from internal/build, the images from internal/image.
package lab
