package cluster

import (
	"time"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Info is what Detect found. Everything that could not be found has its zero
// value, and Warnings says why.
type Info struct {
	// Server is the API server that answered.
	Server Server `json:"server"`
	// Distribution is who made the cluster: "pmk", "kubeadm", "kind", "eks", …
	// or DistributionUnknown.
	Distribution string `json:"distribution"`
	// Layout is where control-plane nodes keep their files: the name of one of
	// Layouts, LayoutManaged where there is no node to look at, or
	// LayoutUnknown.
	Layout string `json:"layout"`
	// Source is what to build the scheduler from.
	Source Source `json:"source"`
	// Configuration tells which config APIs the release understands.
	Configuration Configuration `json:"configuration"`
	// Nodes counts all nodes of the cluster.
	Nodes Nodes `json:"nodes"`
	// ControlPlane is the nodes that the control plane runs on.
	ControlPlane ControlPlane `json:"controlPlane"`
	// Scheduler is the default scheduler, and the place for another beside it.
	Scheduler Scheduler `json:"scheduler"`
	// Node is the machine that Detect ran on.
	Node Node `json:"node"`
	// Credentials is the scheduler's kubeconfig on that machine.
	Credentials Credentials `json:"credentials"`
	// Warnings are sentences for a person; never nil.
	Warnings []string `json:"warnings"`

	// Release is Source.Branch as a value.
	Release versions.Release `json:"-"`
}

// Values of Info.Distribution and Info.Layout that name no row of a table.
const (
	DistributionUnknown = "unknown"
	// LayoutManaged: the control plane has no nodes that a person can reach.
	LayoutManaged = "managed"
	LayoutUnknown = "unknown"
)

// Server is an API server.
type Server struct {
	// Version as the server reports it, suffix included: "v1.29.3-eks-036c24b".
	Version string `json:"version"`
	// URL is the address that was asked.
	URL string `json:"url"`
	// Platform it runs on: "linux/amd64".
	Platform string `json:"platform"`
}

// Source is what a scheduler of the cluster's release is built from.
type Source struct {
	// Branch is the tag of kubernetes/kubernetes: "v1.24.3".
	Branch string `json:"branch"`
	// Module is the same as a Go module: "k8s.io/kubernetes@v1.24.3".
	Module string `json:"module"`
	// Go is the version of Go that the release names: "1.18.3".
	Go string `json:"go"`
}

// Configuration tells which versions of KubeSchedulerConfiguration a release
// understands, as full apiVersions.
type Configuration struct {
	// APIVersion is the one that the release itself writes.
	APIVersion string `json:"apiVersion"`
	// Accepted are all that it reads, oldest first.
	Accepted []string `json:"accepted"`
	// Rendered is the one that pmk-sched writes for it.
	Rendered string `json:"rendered"`
}

// Nodes counts the nodes of a cluster.
type Nodes struct {
	Count int `json:"count"`
	// Kubelets counts them by the version of their kubelet, newest first.
	Kubelets []KubeletCount `json:"kubelets"`
}

// KubeletCount is how many nodes run one version of the kubelet.
type KubeletCount struct {
	Version string `json:"version"`
	Count   int    `json:"count"`
	// Examples are the names of the first few of them.
	Examples []string `json:"examples"`
}

// ControlPlane is the nodes that the control plane runs on.
type ControlPlane struct {
	// Nodes are sorted by name.
	Nodes []ControlPlaneNode `json:"nodes"`
	Count int                `json:"count"`
	// LabelKey is the label that these nodes carry, and LabelValue its value
	// (often empty). A node selector needs both. LabelKey is empty when no
	// such node was found.
	LabelKey   string `json:"labelKey"`
	LabelValue string `json:"labelValue"`
}

// ControlPlaneNode is one node of the control plane.
type ControlPlaneNode struct {
	Name    string  `json:"name"`
	Address string  `json:"address"`
	Taints  []Taint `json:"taints"`
	// Architecture and OS as Go names them: "amd64", "linux".
	Architecture   string `json:"architecture"`
	OS             string `json:"os"`
	KubeletVersion string `json:"kubeletVersion"`
	Ready          bool   `json:"ready"`
	Unschedulable  bool   `json:"unschedulable,omitempty"`
}

// Taint is a taint of a node. PMK's has a value, kubeadm's has none.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// Scheduler is the default scheduler, and the place for another beside it.
type Scheduler struct {
	// Port is for the scheduler that Options.Name names: the one it has, or
	// the first that is free from FirstPort on; 0 when none is.
	Port int `json:"port"`
	// InsecurePort is a second such port, for releases (1.20–1.22) whose
	// scheduler cannot do without a plain HTTP listener; else 0.
	InsecurePort int `json:"insecurePort,omitempty"`
	// Taken are the ports in use on control-plane nodes, as far as that could
	// be seen, by number.
	Taken []TakenPort `json:"taken"`
	// Runs is how the default scheduler runs: one of the Runs constants.
	Runs string `json:"runs"`
	// Pods are the default scheduler's pods, by node; none where it is part of
	// another process.
	Pods []SchedulerPod `json:"pods"`
	// Lease is what its instances elect their leader with.
	Lease Lease `json:"lease"`
	// Deployed are the schedulers that pmk-sched has put beside it, by
	// namespace and name.
	Deployed []DeployedScheduler `json:"deployed"`
}

// DeployedScheduler is a scheduler that pmk-sched has deployed.
type DeployedScheduler struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	// Release of Kubernetes that it was deployed as: "v1.24.3".
	Release string `json:"release"`
	// Due is the release that has to take its place, because the API server is
	// of another minor; empty when nothing is to be done.
	Due string `json:"due,omitempty"`
	// Command is what a person types on a master to bring that about; empty
	// without Due.
	Command string `json:"command,omitempty"`
}

// FirstPort is where the search for a free port begins: the one after the
// default scheduler's.
const FirstPort = versions.SecurePort + 1

// Ways in which a distribution runs the default scheduler.
const (
	RunsAsStaticPod = "static pod"
	// RunsInProcess: inside the distribution's own process, without a pod.
	RunsInProcess = "process"
	// RunsManaged: where nobody but the provider sees it.
	RunsManaged = "managed"
	RunsUnknown = "unknown"
)

// TakenPort is a TCP port in use.
type TakenPort struct {
	Port int `json:"port"`
	// By says who uses it: "pod kube-system/etcd-a" or "a process on this node".
	By string `json:"by"`
}

// SchedulerPod is a pod with a container that runs kube-scheduler.
type SchedulerPod struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Node      string   `json:"node"`
	Container string   `json:"container"`
	Image     string   `json:"image"`
	Command   []string `json:"command"`
	Ports     []int    `json:"ports"`
	Ready     bool     `json:"ready"`
}

// Lease is a leader election's lease.
type Lease struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Holder is empty when nobody holds it or it could not be read.
	Holder  string     `json:"holder"`
	Renewed *time.Time `json:"renewed"`
}

// Node is the machine that Detect ran on.
type Node struct {
	// Root is Options.NodeRoot.
	Root string `json:"root"`
	// ControlPlane says that a layout's scheduler kubeconfig is there.
	ControlPlane bool `json:"controlPlane"`
}

// Credentials is the scheduler's kubeconfig on a node, without its secrets.
type Credentials struct {
	// Kubeconfig is the path on the node, without Options.NodeRoot in front;
	// empty when the machine is no control-plane node.
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	// User is whom the API server takes the holder for, which is the common
	// name of the certificate, and Groups its organisations.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Subject of the certificate: "CN=system:kube-scheduler,O=…".
	Subject string `json:"subject"`
	// Expires is the end of the certificate; nil when it could not be read.
	Expires *time.Time `json:"expires"`
	// OtherCluster says that it trusts none of the certificate authorities that the
	// caller's own configuration trusts: it may be of another cluster.
	OtherCluster bool `json:"otherCluster,omitempty"`
}
