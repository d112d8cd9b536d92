//go:build linux

// Package lab runs a real Kubernetes cluster of any supported release on this machine, without
// Docker and without changing the machine's own network, files or service manager.
//
// A lab has nodes and a network. A node is a network, mount, UTS and cgroup namespace in which
// containerd, the kubelet and kube-proxy run as plain processes. A node's /etc/kubernetes,
// /var/lib/kubelet, /run and so on are in its directory below root/ and are bind-mounted to their
// usual paths inside the mount namespace: a hostPath volume, the containerd socket and the static
// pod path are as on a real node. The network is a namespace with a bridge that connects the nodes
// and this machine, a load balancer in front of several API servers, and kwok, which simulates
// further workers.
//
// With the layout kubeadm, the release's kubeadm creates the cluster: "init", "join", images with
// the names and structure of the Kubernetes release images. With the PMK layout, the lab itself
// writes the control-plane nodes' files, and each node runs an etcd process. Several control-plane
// nodes have a virtual address, which keepalived gives to one of them. With the layout hosted, the
// control plane is not part of the cluster: its programs run as processes on hosts that have no
// kubelet and no route to pods, and all nodes are workers.
//
// Every lab process is in the lab's own cgroups. Mounts, links and packet filter rules are in its
// namespaces and end with them. Down therefore finds everything, even if Up was killed, and
// stopping a node stops all its processes at once.
//
// The binaries come from internal/artifact/programs, the images from internal/artifact/image.
package lab

import (
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Lab layouts: a distribution's directories for control-plane node files, and its way to run the
// control plane.
const (
	// LayoutPMK is Platform9 Managed Kubernetes: /etc/pf9/kube.d, one static pod with three
	// containers, API server on port 443.
	LayoutPMK = "pmk"
	// LayoutKubeadm is kubeadm: /etc/kubernetes, a static pod for each component, API server on
	// port 6443.
	LayoutKubeadm = "kubeadm"
	// LayoutHosted is a hosted control plane: etcd, API servers, controller-manager and scheduler run
	// outside of the cluster, which has workers only.
	LayoutHosted = "hosted"
)

// DefaultName is a lab's default name.
const DefaultName = "lab"

// Options are the options of Up and Upgrade.
type Options struct {
	// Name of the lab, a DNS label with at most 30 characters. Defaults to DefaultName.
	Name string
	// Release is the Kubernetes release. Required.
	Release versions.Release
	// Layout is LayoutPMK, LayoutKubeadm or LayoutHosted; the default is LayoutPMK.
	Layout string
	// Masters is the number of control-plane nodes, or of API servers with LayoutHosted. Defaults to
	// one.
	Masters int
	// Workers is the number of workers with a kubelet. The default is two with LayoutHosted.
	Workers int
	// Nodes is the number of fake workers, simulated by kwok.
	Nodes int
	// StateDir is the directory that holds one directory per lab. Required, absolute.
	StateDir string
	// CacheDir is the directory for binaries and images that labs share. Required, absolute.
	CacheDir string
	// Env is the environment for compiling and for finding the machine's programs: PATH, HOME, the go
	// command's variables.
	Env []string
	// Keep keeps a lab that failed to start, for inspection. Down removes it.
	Keep bool
	// Programs finds the binaries. By default they are compiled.
	Programs Programs
	// Log receives details. It may be nil.
	Log *zap.Logger
	// OnStep may be nil.
	OnStep steps.OnStep
}

// Lab is an existing lab on this machine. Its methods need only the lab's directory, and several
// processes can use them.
type Lab struct {
	state state
	dir   string
}

type state struct {
	Name    string           `json:"name"`
	Release versions.Release `json:"release"`
	Layout  string           `json:"layout"`
	Masters int              `json:"masters"`
	Workers int              `json:"workers"`
	Nodes   int              `json:"nodes"`
	Created time.Time        `json:"created"`
	// Ready is set when Up has finished.
	Ready bool `json:"ready"`
	// Programs are the programs that the lab runs, with their origins.
	Programs []programs.Program `json:"programs,omitempty"`
	// Subnet is the network of the machine and the nodes, such as "198.18.3.0/24". It is empty
	// until the lab has chosen a network.
	Subnet string `json:"subnet,omitempty"`
}

// Name returns the lab's name.
func (l *Lab) Name() string { return l.state.Name }

// Release returns the Kubernetes release that the lab runs.
func (l *Lab) Release() versions.Release { return l.state.Release }

// Layout returns LayoutPMK, LayoutKubeadm or LayoutHosted.
func (l *Lab) Layout() string { return l.state.Layout }

// layout describes the lab's layout. A lab without one has PMK's.
func (l *Lab) layout() layout {
	if lay, err := findLayout(l.state.Layout); err == nil {
		return lay
	}
	return pmkLayout()
}

// byKubeadm reports whether kubeadm makes the cluster, instead of the lab itself.
func (l *Lab) byKubeadm() bool { return l.state.Layout == LayoutKubeadm }

// hosted reports whether the control plane runs outside of the cluster.
func (l *Lab) hosted() bool { return l.state.Layout == LayoutHosted }

// Dir returns the lab's directory: its state, and a directory for each node with logs (log/),
// programs (bin/) and the node's files (root/).
func (l *Lab) Dir() string { return l.dir }

// Link returns the machine's interface name for the lab's network link.
func (l *Lab) Link() string { return linkName(l.dir) }

// Kubeconfig returns the path of an administrator's kubeconfig that works on the machine, outside
// the lab's namespaces.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }
