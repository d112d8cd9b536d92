//go:build linux

package lab

import (
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/versions"
)

// The layouts that a lab can have: where a distribution keeps its files on a
// master and how it runs the control plane.
const (
	// LayoutPMK is Platform9 Managed Kubernetes: /etc/pf9/kube.d, one static
	// pod of three containers, API server on port 443.
	LayoutPMK = "pmk"
	// LayoutKubeadm is kubeadm: /etc/kubernetes, a static pod for each
	// component, API server on port 6443.
	LayoutKubeadm = "kubeadm"
)

// DefaultName is the name of a lab for which none was chosen.
const DefaultName = "lab"

// Options says what lab Up makes.
type Options struct {
	// Name of the lab, a DNS label of at most 30 characters; "" means
	// DefaultName.
	Name string
	// Release of Kubernetes that the lab runs. Required.
	Release versions.Release
	// Layout is LayoutPMK or LayoutKubeadm; "" means LayoutPMK.
	Layout string
	// Nodes is the number of fake workers, kept alive by kwok.
	Nodes int
	// StateDir is the folder that holds one folder per lab. Required,
	// absolute.
	StateDir string
	// CacheDir is the folder for what is kept between labs: compiled
	// binaries and images. Required, absolute.
	CacheDir string
	// Env is the environment for compiling and for finding the machine's
	// programs: PATH, HOME, what the go command needs.
	Env []string
	// Keep leaves a lab that could not be brought up as it is, to look at.
	// Down removes it.
	Keep bool
	// Programs provides the binaries; nil means to compile them with
	// internal/build.
	Programs Programs
	// Log receives what is done in detail; nil means nowhere.
	Log *zap.Logger
	// OnStep is called when a step begins, and what it returns when the step
	// has ended. Both may be nil.
	OnStep func(name string) (done func(err error))
}

// Lab is a lab that exists on this machine. Its methods work from the lab's
// folder alone and can be used by several processes.
type Lab struct {
	state state
	dir   string
}

// state is what is written to lab.json.
type state struct {
	Name    string           `json:"name"`
	Release versions.Release `json:"release"`
	Layout  string           `json:"layout"`
	Nodes   int              `json:"nodes"`
	Created time.Time        `json:"created"`
	// Ready is set when Up has finished.
	Ready bool `json:"ready"`
	// Subnet is the network between the machine and the node, such as
	// "198.18.3.0/24"; "" until it is chosen.
	Subnet string `json:"subnet,omitempty"`
}

// Name returns the name of the lab.
func (l *Lab) Name() string { return l.state.Name }

// Release returns the release of Kubernetes that the lab runs.
func (l *Lab) Release() versions.Release { return l.state.Release }

// Layout returns LayoutPMK or LayoutKubeadm.
func (l *Lab) Layout() string { return l.state.Layout }

// Dir returns the folder of the lab: state, logs (log/), programs (bin/), and
// the node's files (root/).
func (l *Lab) Dir() string { return l.dir }

// Root returns the folder that holds the node's own files as they would lie
// below / on a real master. It is what --node-root takes.
func (l *Lab) Root() string { return filepath.Join(l.dir, "root") }

// Link returns the name of the machine's end of the lab's network.
func (l *Lab) Link() string { return linkName(l.dir) }

// LogDir returns the folder with a log file for each process of the node.
func (l *Lab) LogDir() string { return filepath.Join(l.dir, "log") }

// BinDir returns the folder with the programs of the lab's release, kubectl
// among them.
func (l *Lab) BinDir() string { return filepath.Join(l.dir, "bin") }

// Kubeconfig returns the path of an administrator's kubeconfig that works on
// the machine itself, outside of the lab's namespaces.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }
