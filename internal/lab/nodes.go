//go:build linux

package lab

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Role of a node in its cluster.
type Role string

// Roles of nodes.
const (
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
)

// Node is a node of a lab: namespaces, processes and files that look like a machine with a kubelet.
type Node struct {
	host
	lab *Lab
	// hostName is the host name; name is the Node object's name.
	hostName, name string
	role           Role
	// address is the address in the lab's network; invalid until the network is chosen.
	address netip.Addr
	// pods is the network of the node's pods. It is invalid for a host without a kubelet.
	pods netip.Prefix
	// zone is the availability zone, if the layout has zones.
	zone string
}

// hasKubelet reports whether the node is part of the cluster. Hosts with a hosted control plane are
// not: they have no Node object, no containerd and no pods.
func (n *Node) hasKubelet() bool { return n.role == Worker || !n.lab.hosted() }

// Name returns the Node object's name.
func (n *Node) Name() string { return n.name }

// Role returns the role of the node in the cluster.
func (n *Node) Role() Role { return n.role }

// Address returns the node's address, which this machine can reach.
func (n *Node) Address() netip.Addr { return n.address }

// Root returns the directory that holds the node's own files, as below / on a real node.
func (n *Node) Root() string { return filepath.Join(n.dir, "root") }

// LogDir returns the directory with a log file for each process of the node.
func (n *Node) LogDir() string { return n.logDir() }

// binDir returns the directory with the programs of the node's release.
func (n *Node) binDir() string { return filepath.Join(n.dir, "bin") }

func (n *Node) binary(name string) string { return filepath.Join(n.binDir(), name) }

// port is the name of the node's link in the lab's network, and its directory's name.
func (n *Node) port() string { return filepath.Base(n.dir) }

// Nodes returns the lab's nodes, without the simulated ones: first the control-plane nodes.
func (l *Lab) Nodes() []*Node {
	var nodes []*Node
	for i := range max(1, l.state.Masters) {
		nodes = append(nodes, l.node(ControlPlane, i))
	}
	for i := range l.state.Workers {
		nodes = append(nodes, l.node(Worker, i))
	}
	return nodes
}

func (l *Lab) masters() []*Node { return l.Nodes()[:max(1, l.state.Masters)] }

// clusterNodes returns the nodes with a kubelet.
func (l *Lab) clusterNodes() []*Node {
	return slices.DeleteFunc(l.Nodes(), func(n *Node) bool { return !n.hasKubelet() })
}

// first returns the node on which the cluster was created.
func (l *Lab) first() *Node { return l.node(ControlPlane, 0) }

// Node returns the node with the name, or with the host name; "" is the first one.
func (l *Lab) Node(name string) (*Node, error) {
	if name == "" {
		return l.first(), nil
	}
	hint := "nodes of the lab:"
	for _, n := range l.Nodes() {
		if n.name == name || n.hostName == name {
			return n, nil
		}
		hint += " " + n.name
	}
	return nil, problem.Invalidf(hint, "lab %s has no node %q", l.Name(), name)
}

// The most nodes that a lab can have, and the offset of the workers' addresses.
const (
	maxMasters, maxWorkers = 7, 20
	workerOffset           = 10
)

func (l *Lab) node(role Role, i int) *Node {
	short := map[Role]string{ControlPlane: "cp", Worker: "w"}[role] + strconv.Itoa(i+1)
	n := &Node{host: l.host(short), lab: l, role: role, hostName: l.Name()}
	switch {
	case role == Worker:
		n.hostName += "-worker-" + strconv.Itoa(i+1)
		n.zone = zoneName(i)
		i += workerOffset
	case l.hosted():
		n.hostName += "-api-" + strconv.Itoa(i+1)
	case i > 0:
		n.hostName += "-" + strconv.Itoa(i+1)
	}
	if n.hasKubelet() {
		n.pods = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24)
	}
	n.name = n.hostName
	subnet, err := netip.ParsePrefix(l.state.Subnet)
	if err != nil {
		return n
	}
	n.address = addressIn(subnet, firstNode+i)
	n.name = l.layout().nodeName(n.hostName, n.address.String())
	return n
}

func (l *Lab) host(name string) host {
	return host{dir: filepath.Join(l.dir, name), cgroup: filepath.Join(groupName(l.dir), name)}
}

// network returns the host of the network that connects the nodes with each other and this machine.
func (l *Lab) network() host { return l.host("net") }

func (l *Lab) hosts() []host {
	hosts := []host{l.network()}
	for _, n := range l.Nodes() {
		hosts = append(hosts, n.host)
	}
	return hosts
}

// NodeName returns the first node's name: its address with the layout pmk, the lab's name with
// kubeadm.
func (l *Lab) NodeName() (string, error) {
	_, err := l.NodeAddress()
	return l.first().name, err
}

// NodeAddress returns the first node's address, which the machine can reach.
func (l *Lab) NodeAddress() (netip.Addr, error) {
	n := l.first()
	if !n.address.IsValid() {
		return netip.Addr{}, fmt.Errorf("lab %s has no network yet: %w", l.Name(), l.notRunning())
	}
	return n.address, nil
}

// Root returns the directory that holds the first node's own files. It is the value for
// --node-root.
func (l *Lab) Root() string { return l.first().Root() }

// LogDir returns the directory with a log file for each process of the first node.
func (l *Lab) LogDir() string { return l.first().LogDir() }

// StaticPods returns the kubelet's static pod path below Root: a file with the layout pmk, a
// directory with kubeadm.
func (l *Lab) StaticPods() string { return filepath.Join(l.Root(), l.layout().staticPods) }
