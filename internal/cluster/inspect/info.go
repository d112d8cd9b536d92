package inspect

import (
	"net/netip"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Info is the result of Detect. Unknown fields have their zero value, and Warnings lists the
// reasons.
type Info struct {
	// Server is the API server that answered.
	Server Server `json:"server"`
	// Distribution is "pmk", "kubeadm", "kind", "eks", …, DistributionHosted or DistributionUnknown.
	Distribution string `json:"distribution"`
	// Layout names one of layouts, LayoutManaged if the control plane has no nodes in the cluster, or
	// LayoutUnknown.
	Layout string `json:"layout"`
	// Source is the source from which to build the scheduler.
	Source Source `json:"source"`
	// Configuration lists the release's config APIs.
	Configuration Configuration `json:"configuration"`
	// Nodes counts all nodes in the cluster.
	Nodes Nodes `json:"nodes"`
	// Hosted describes a control plane outside the cluster. It is nil if the cluster has control-plane
	// nodes, and if that is unknown.
	Hosted *Hosted `json:"hosted,omitempty"`
	// ControlPlane describes the control-plane nodes.
	ControlPlane ControlPlane `json:"controlPlane"`
	// Scheduler describes the default scheduler and the schedulers deployed by pmk-sched.
	Scheduler Scheduler `json:"scheduler"`
	// Gangs describes the API for gang scheduling without a plugin. It is nil before 1.35, and if
	// the API is unknown.
	Gangs *Gangs `json:"gangs,omitempty"`
	// Routing describes what can set the scheduler of new pods. It is nil if that is unknown.
	Routing *Routing `json:"routing,omitempty"`
	// Arbiter is the namespace of the registered arbiter of pmk-sched, which refuses bindings. It is
	// empty if there is none, and if the caller may not list webhooks.
	Arbiter string `json:"arbiter,omitempty"`
	// Node is this machine.
	Node Node `json:"node"`
	// Credentials is the default scheduler's kubeconfig on this machine.
	Credentials Credentials `json:"credentials"`
	// KnownProblems are known bugs in the kube-scheduler at the cluster's release, and in deployed
	// schedulers. It is never nil.
	KnownProblems []KnownProblem `json:"knownProblems"`
	// Warnings are for the user. It is never nil.
	Warnings []string `json:"warnings"`
	// Requests counts the requests that were sent to the API server. It is 0 if they were not counted.
	Requests int64 `json:"requests,omitempty"`

	// Release is Source.Branch as a value.
	Release versions.Release `json:"-"`
}

// Values for Info.Distribution and Info.Layout that are in no table.
const (
	DistributionUnknown = "unknown"
	// DistributionHosted is a hosted control plane of an unknown product.
	DistributionHosted = "hosted"
	// LayoutManaged: the control plane runs outside the cluster.
	LayoutManaged = "managed"
	LayoutUnknown = "unknown"
)

// AssignsUser reports whether the cluster assigns the user for pods in a namespace, and refuses
// others by default, as OpenShift does except in its own namespaces
// (openshift/apiserver-library-go, pkg/securitycontextconstraints).
func (i *Info) AssignsUser(namespace string) bool {
	openshift := i.Distribution == "openshift" || i.Distribution == "hypershift"
	own := namespace == "default" || strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "openshift")
	return openshift && !own
}

// Server is an API server.
type Server struct {
	// Version with its suffix: "v1.29.3-eks-036c24b".
	Version string `json:"version"`
	// URL is the address for the requests.
	URL string `json:"url"`
	// Platform is the server's platform: "linux/amd64".
	Platform string `json:"platform"`
}

// Source is the source for a scheduler at the cluster's release.
type Source struct {
	// Branch is the tag in kubernetes/kubernetes: "v1.24.3".
	Branch string `json:"branch"`
	// Module is the Go module: "k8s.io/kubernetes@v1.24.3".
	Module string `json:"module"`
	// Go is the release's Go version: "1.18.3".
	Go string `json:"go"`
}

// Configuration lists a release's KubeSchedulerConfiguration versions, as full apiVersions.
type Configuration struct {
	// APIVersion is the release's preferred version.
	APIVersion string `json:"apiVersion"`
	// Accepted are all versions that the release accepts, oldest first.
	Accepted []string `json:"accepted"`
	// Rendered is the version that pmk-sched renders.
	Rendered string `json:"rendered"`
}

// Nodes counts a cluster's nodes.
type Nodes struct {
	Count int `json:"count"`
	// Kubelets counts them by their kubelet's version, newest first.
	Kubelets []KubeletCount `json:"kubelets"`
}

// KubeletCount counts the nodes with one kubelet version.
type KubeletCount struct {
	Version string `json:"version"`
	Count   int    `json:"count"`
	// Examples are the names of some nodes.
	Examples []string `json:"examples"`
}

// ControlPlane describes the control-plane nodes.
type ControlPlane struct {
	// Nodes are sorted by name.
	Nodes []ControlPlaneNode `json:"nodes"`
	Count int                `json:"count"`
	// LabelKey and LabelValue are the label on these nodes; the value is often empty. LabelKey is
	// empty if no such node was found.
	LabelKey   string `json:"labelKey"`
	LabelValue string `json:"labelValue"`
	// Truncated is set if more nodes than Options.MaxControlPlaneNodes have a label.
	Truncated bool `json:"truncated,omitempty"`
	// Endpoint is the address for all API servers, "host:port", if kubeadm was given one
	// (controlPlaneEndpoint).
	Endpoint string `json:"endpoint,omitempty"`
}

// ControlPlaneNode is one control-plane node.
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
	// Unlabelled is set if the node lacks the label LabelKey that the others have.
	Unlabelled bool `json:"unlabelled,omitempty"`
	// APIServer is the API server's static pod on the node. It is nil if unknown.
	APIServer *APIServer `json:"apiServer,omitempty"`

	// Names are its name and its addresses.
	Names []string `json:"-"`
}

// APIServer is a node's API server.
type APIServer struct {
	// Port is the port for HTTPS.
	Port int `json:"port"`
	// BindAddress is the address that it listens on; an unspecified one means every address.
	BindAddress string `json:"bindAddress"`
	// AdvertiseAddress is the address at which others reach it. If it is empty, they use the node's
	// address.
	AdvertiseAddress string `json:"advertiseAddress,omitempty"`
}

// ServesLoopback reports whether a process on its node reaches it over loopback.
func (a *APIServer) ServesLoopback() bool {
	address, err := netip.ParseAddr(a.BindAddress)
	return err == nil && (address.IsUnspecified() || address.IsLoopback())
}

// Taint is a taint on a node. PMK's has a value, kubeadm's does not.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// String returns the taint as kubectl prints it: key=value:effect, or key:effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// Scheduler describes the default scheduler and the schedulers deployed by pmk-sched.
type Scheduler struct {
	// Port is the port for the scheduler Options.Name: its current port, or the first free port
	// from FirstPort on. It is 0 if no port is free.
	Port int `json:"port"`
	// InsecurePort is a second such port, for releases (1.20–1.22) whose
	// scheduler requires a plain HTTP listener; otherwise 0.
	InsecurePort int `json:"insecurePort,omitempty"`
	// Taken are the ports known to be in use on control-plane nodes, by number.
	Taken []TakenPort `json:"taken"`
	// Runs is the default scheduler's form: one of the Runs constants.
	Runs string `json:"runs"`
	// Pods are the default scheduler's pods, by node. There are none if it is part of another process.
	Pods []SchedulerPod `json:"pods"`
	// Lease is the lease for its leader election.
	Lease Lease `json:"lease"`
	// Deployed are the schedulers deployed by pmk-sched, by namespace and name.
	Deployed []DeployedScheduler `json:"deployed"`
}

// DeployedScheduler is a scheduler deployed by pmk-sched.
type DeployedScheduler struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	// Release of the scheduler: "v1.24.3".
	Release string `json:"release"`
	// Due is the release to upgrade to, if the API server is at another minor.
	Due string `json:"due,omitempty"`
	// Command upgrades the scheduler on a control-plane node. It is empty without Due.
	Command string `json:"command,omitempty"`
	// Certificate is the scheduler's certificate that expires first. It is nil if the scheduler has
	// no certificate or if it is unknown.
	Certificate *MountedCertificate `json:"certificate,omitempty"`
	// DependsOn is the control-plane node whose API server all its replicas use, if there are other
	// control-plane nodes. It is empty if their kubeconfig names no single node, or if unknown.
	DependsOn string `json:"dependsOn,omitempty"`
}

// FirstPort is the first port of the search for a free port: the port after the default
// scheduler's.
const FirstPort = versions.SecurePort + 1

// Ways in which a distribution runs the default scheduler.
const (
	RunsAsStaticPod = "static pod"
	// RunsInProcess: inside one of the distribution's processes, without a pod.
	RunsInProcess = "process"
	// RunsInContainer: in a container that the kubelet does not know.
	RunsInContainer = "container"
	// RunsManaged: outside the cluster, managed by the provider.
	RunsManaged = "managed"
	RunsUnknown = "unknown"
)

// TakenPort is a TCP port in use.
type TakenPort struct {
	Port int `json:"port"`
	// By is the user of the port: "pod kube-system/etcd-a" or "a process on this node".
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
	// Replaced is set if pmk-sched replaced the static pod.
	Replaced bool `json:"replaced,omitempty"`
}

// Lease is a leader election's lease.
type Lease struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Holder is empty if there is none or the lease could not be read.
	Holder  string     `json:"holder"`
	Renewed *time.Time `json:"renewed"`
}

// Node is the machine on which Detect ran.
type Node struct {
	// Root is Options.NodeRoot.
	Root string `json:"root"`
	// ControlPlane is set if a layout's scheduler kubeconfig exists on the machine.
	ControlPlane bool `json:"controlPlane"`
}

// Credentials is the scheduler's kubeconfig on a node, without its secrets.
type Credentials struct {
	// Kubeconfig is the path on the node, without Options.NodeRoot. It is empty
	// if the machine is not a control-plane node.
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	// User and Groups are the certificate's common name and organisations.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Subject of the certificate: "CN=system:kube-scheduler,O=…".
	Subject string `json:"subject"`
	// Expires is when the certificate expires. It is nil if unknown.
	Expires *time.Time `json:"expires"`
	// OtherCluster is set if it trusts none of the certificate authorities that the
	// caller's configuration trusts: it may be for another cluster.
	OtherCluster bool `json:"otherCluster,omitempty"`
}
