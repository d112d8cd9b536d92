// Package lab runs a real Kubernetes control-plane node of any supported release on this machine,
// without Docker and without changing the machine's own network, files or service manager.
//
// A lab is one node: a network, mount and UTS namespace in which etcd, containerd, the kubelet,
// kube-proxy and, with fake workers, kwok run as plain processes, and the control plane runs as the
// static pods of the chosen layout. The directories that a node keeps in /etc/pf9, /etc/kubernetes,
// /var/lib/kubelet, /run and so on are in the lab's own directory below root/ and are bind-mounted
// to their usual paths inside the mount namespace: a hostPath volume, the containerd socket and the
// static pod path are as on a real node.
//
// Every process of a lab is in the lab's own cgroups. Mounts, links and packet filter rules are in
// its namespaces and end with them. That is how Down finds everything, even when Up was killed.
//
// The binaries come from internal/build, the images from internal/image.
package lab
