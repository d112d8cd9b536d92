// Package lab runs a real Kubernetes cluster of any supported release on this machine, without
// Docker and without changing the machine's own network, files or service manager.
//
// A lab has nodes and a network. A node is a network, mount, UTS and cgroup namespace in which
// containerd, the kubelet and kube-proxy run as plain processes. The directories that a node keeps in
// /etc/kubernetes, /var/lib/kubelet, /run and so on are in the node's directory below root/ and are
// bind-mounted to their usual paths inside the mount namespace: a hostPath volume, the containerd
// socket and the static pod path are as on a real node. The network is a namespace with a bridge that
// connects the nodes and this machine, a load balancer in front of several API servers, and kwok,
// which simulates further workers.
//
// A cluster is made in one of two ways. With the layout kubeadm, kubeadm of the release makes it:
// "init", "join", images with the names and the structure of the Kubernetes release images. With
// the layout of PMK the lab itself writes the files of the control-plane nodes, and etcd is a
// process of each node. Several of them have a virtual address, which keepalived gives to one of
// them.
//
// Every process of a lab is in the lab's own cgroups. Mounts, links and packet filter rules are in
// its namespaces and end with them. That is how Down finds everything, even when Up was killed, and
// how a node is stopped: all its processes at once.
//
// The binaries come from internal/artifact/build, the images from internal/artifact/image.
package lab
