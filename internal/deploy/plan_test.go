package deploy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// masterInfo is the result of Detect on a cluster of one control-plane node.
func masterInfo(server string) *inspect.Info {
	release, err := versions.FromServer(server)
	if err != nil {
		panic(err)
	}
	return &inspect.Info{
		Server: inspect.Server{Version: server}, Release: release, Nodes: inspect.Nodes{Count: 5},
		ControlPlane: inspect.ControlPlane{
			Nodes: []inspect.ControlPlaneNode{{Name: "master", Ready: true}}, Count: 1,
			LabelKey: "node-role.kubernetes.io/master",
		},
		Scheduler: inspect.Scheduler{Port: 10260, InsecurePort: 10261,
			Taken: []inspect.TakenPort{{Port: 10259, By: "pod kube-system/k8s-master"}}},
	}
}

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func nodeCredentials() *inspect.NodeCredentials {
	return &inspect.NodeCredentials{
		Path: "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml", Server: "https://localhost:443",
		User:    "system:kube-scheduler",
		Expires: now.AddDate(1, 0, 0), CA: []byte("CA\n"), Cert: []byte("CERT\n"), Key: []byte("KEY\n"),
	}
}

// kubeadmInfo is a cluster of kubeadm with two control-plane nodes, on each of which the API server
// runs.
func kubeadmInfo(server *inspect.APIServer) *inspect.Info {
	info := masterInfo("v1.29.3")
	info.Layout, info.ControlPlane.Count = "kubeadm", 2
	info.ControlPlane.Nodes = []inspect.ControlPlaneNode{
		{Name: "a", Ready: true, Address: "10.0.0.1", Names: []string{"a", "10.0.0.1", "192.0.2.1"}, APIServer: server},
		{Name: "b", Ready: true, Address: "10.0.0.2", Names: []string{"b", "10.0.0.2"}, APIServer: server},
	}
	return info
}

// pmkNodes are control-plane nodes of PMK, named by their addresses: each API server has port 443
// on every address.
func pmkNodes(addresses ...string) []inspect.ControlPlaneNode {
	var nodes []inspect.ControlPlaneNode
	for _, address := range addresses {
		nodes = append(nodes, inspect.ControlPlaneNode{
			Name: address, Address: address, Names: []string{address}, Ready: true,
			Taints:    []inspect.Taint{{Key: "node-role.kubernetes.io/master", Value: "true", Effect: "NoSchedule"}},
			APIServer: &inspect.APIServer{Port: 443, BindAddress: "0.0.0.0", AdvertiseAddress: address},
		})
	}
	return nodes
}

// everyAddress is an API server that listens on every address.
func everyAddress() *inspect.APIServer { return &inspect.APIServer{Port: 6443, BindAddress: "0.0.0.0"} }

// ofNodeA are the credentials of kubeadm's node a, which name its own API server.
func ofNodeA() *inspect.NodeCredentials {
	credentials := nodeCredentials()
	credentials.Path, credentials.Server = "/etc/kubernetes/scheduler.conf", "https://10.0.0.1:6443"
	return credentials
}

// summary is the content of the golden files: the decisions of a plan, and its objects by name. The
// content of objects is tested in package manifest.
type summary struct {
	Release, API, Credentials string
	Server                    string   `json:",omitempty"`
	Endpoints                 []string `json:",omitempty"`
	Port                      int
	Replicas                  int32
	NodeSelector              map[string]string
	Objects, Notes, Warnings  []string
}

// contentHash is the suffix of object names that contain the hash of their content.
var contentHash = regexp.MustCompile(`-[0-9a-f]{10}$`)

func summarize(p *Plan) summary {
	s := summary{
		Release: p.Release.String(), API: p.Scheduler.Configuration.APIVersion, Credentials: p.Scheduler.Credentials.Mode,
		Port: p.Scheduler.Port, Replicas: p.Scheduler.Replicas, NodeSelector: p.Scheduler.NodeSelector, Notes: p.Notes,
		Warnings: p.Warnings,
	}
	if info := p.from.Cluster; info != nil && info.ControlPlane.Count > 1 {
		s.Server = strings.TrimSuffix(p.Scheduler.Credentials.Server+" as "+p.Scheduler.Credentials.ServerName, " as ")
	}
	for _, e := range p.Endpoints {
		s.Endpoints = append(s.Endpoints,
			fmt.Sprintf("%s %s as %s, local %v, chosen %v", e.Node, e.Address, e.ServerName, e.Local, e.Chosen))
	}
	for _, o := range p.Objects {
		s.Objects = append(s.Objects, contentHash.ReplaceAllString(objectName(o), "-HASH"))
	}
	return s
}

func TestPlanDefaults(t *testing.T) {
	three := masterInfo("v1.29.3-eks-036c24b")
	three.ControlPlane.Count = 3
	three.ControlPlane.Nodes = []inspect.ControlPlaneNode{{Name: "a", Ready: true}, {Name: "b", Ready: true}, {Name: "c"}}
	three.ControlPlane.LabelKey = "node-role.kubernetes.io/control-plane"
	unlabelled := masterInfo("v1.29.3")
	unlabelled.ControlPlane.Count = 3
	unlabelled.ControlPlane.Nodes = []inspect.ControlPlaneNode{{Name: "a", Ready: true}, {Name: "b", Ready: true,
		Unlabelled: true, Taints: []inspect.Taint{{Key: "own", Effect: "NoSchedule"}}}, {Name: "c", Ready: true}}
	openshift := masterInfo("v1.27.6+f67aeb3")
	openshift.Distribution, openshift.Layout = "openshift", "openshift"
	withEndpoint := kubeadmInfo(nil)
	withEndpoint.ControlPlane.Endpoint = "api.example.com:6443"
	onNode := kubeadmInfo(everyAddress())
	onNode.Node = inspect.Node{Root: "/", ControlPlane: true}
	down := kubeadmInfo(everyAddress())
	down.ControlPlane.Nodes[1].Ready = false
	pmk := masterInfo("v1.24.3")
	pmk.Layout, pmk.ControlPlane.Count = "pmk", 3
	pmk.ControlPlane.Nodes = pmkNodes("10.0.0.1", "10.0.0.2", "10.0.0.3")
	managed := masterInfo("v1.31.1")
	managed.ControlPlane = inspect.ControlPlane{}
	hosted := masterInfo("v1.34.2")
	hosted.ControlPlane, hosted.Layout = inspect.ControlPlane{}, inspect.LayoutManaged
	hosted.Hosted, hosted.Nodes.Count = &inspect.Hosted{Kind: "Amazon EKS"}, 5
	single := masterInfo("v1.34.2")
	single.ControlPlane, single.Layout = inspect.ControlPlane{}, inspect.LayoutManaged
	single.Hosted, single.Nodes.Count = &inspect.Hosted{Kind: inspect.UnknownKind}, 1
	tests := map[string]struct {
		namespace string
		spec      v1alpha1.CustomSchedulerSpec
		facts     Facts
	}{
		"master":                {facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCredentials()}},
		"away":                  {facts: Facts{Cluster: masterInfo("v1.24.3")}},
		"three-masters":         {facts: Facts{Cluster: three}},
		"one-without-the-label": {facts: Facts{Cluster: unlabelled}},
		"openshift":             {facts: Facts{Cluster: openshift}, namespace: "gpu"},
		"two-of-kubeadm": {facts: Facts{Cluster: kubeadmInfo(nil), Node: ofNodeA()},
			spec: v1alpha1.CustomSchedulerSpec{Replicas: 3, Credentials: "node"}},
		"two-on-loopback":          {facts: Facts{Cluster: onNode, Node: ofNodeA()}},
		"two-with-an-endpoint":     {facts: Facts{Cluster: withEndpoint, Node: ofNodeA()}},
		"two-of-which-one-is-down": {facts: Facts{Cluster: down, Node: ofNodeA()}},
		"three-of-pmk":             {facts: Facts{Cluster: pmk, Node: nodeCredentials()}},
		"oldest":                   {facts: Facts{Cluster: masterInfo("v1.20.15"), Node: nodeCredentials()}},
		"managed":                  {facts: Facts{Cluster: managed}, spec: v1alpha1.CustomSchedulerSpec{AnyNode: true}},
		"hosted":                   {facts: Facts{Cluster: hosted, Node: nodeCredentials()}},
		"hosted-one-node":          {facts: Facts{Cluster: single}},
		"offline":                  {facts: Facts{Branch: "v1.37.1"}},
		"inline": {facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCredentials()},
			spec: v1alpha1.CustomSchedulerSpec{Credentials: "node-inline"}},
		"all-was-chosen": {facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCredentials(), Branch: "v1.23.6"},
			spec: v1alpha1.CustomSchedulerSpec{Credentials: "hostpath", Replicas: 2, Ports: v1alpha1.Ports{Secure: 10300},
				NodeSelector: map[string]string{"a": "b"}, Configuration: v1alpha1.Configuration{Preset: "binpack"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.facts.Image, tt.facts.Now = "localhost/my-scheduler:v1", now
			plan, err := PlanInput{Name: "my-scheduler", Namespace: tt.namespace, Spec: tt.spec, Facts: tt.facts}.Plan()
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(summarize(plan), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/"+name+".json", string(got)+"\n")
		})
	}
}

func TestPlanRefusesInvalidOptions(t *testing.T) {
	noMaster := masterInfo("v1.24.3")
	noMaster.ControlPlane = inspect.ControlPlane{}
	blind := masterInfo("v1.24.3")
	blind.ControlPlane, blind.Nodes = inspect.ControlPlane{}, inspect.Nodes{}
	hosted := masterInfo("v1.24.3")
	hosted.ControlPlane, hosted.Hosted = inspect.ControlPlane{}, &inspect.Hosted{Kind: "Kamaji"}
	bare := masterInfo("v1.24.3")
	bare.ControlPlane = inspect.ControlPlane{Count: 2, Nodes: []inspect.ControlPlaneNode{{Name: "a", Unlabelled: true},
		{Name: "b", Unlabelled: true}}}
	full := masterInfo("v1.24.3")
	full.Scheduler.Port = 0
	old := nodeCredentials()
	old.Expires = now.Add(-time.Hour)
	tests := map[string]struct {
		name  string
		spec  v1alpha1.CustomSchedulerSpec
		facts Facts
		says  string
		hint  string
		valid bool // the input is valid
	}{
		"no name": {name: " ", says: "is not a DNS label", hint: "lower-case"},
		"bad name": {name: "My_Scheduler", says: `"My_Scheduler" is not a DNS label`,
			hint: "lower-case"},
		"the default's": {name: "default-scheduler", says: "default-scheduler", hint: "another name"},
		"no label":      {facts: Facts{Cluster: bare}, says: "nodes a, b have no label", hint: "kubectl label nodes a b "},
		"no branch":     {says: "--branch is required", hint: "--branch"},
		"half a branch": {facts: Facts{Branch: "v1.24"}, says: `"v1.24"`, hint: "v1.24."},
		"too old":       {facts: Facts{Branch: "v1.19.3"}, says: "1.19", hint: "use a release from 1.20 to "},
		"would hang": {facts: Facts{Cluster: masterInfo("v1.24.3"), Branch: "v1.34.2"},
			says: "waits for resource.k8s.io/v1 ResourceClaims", hint: "1.24"},
		"no such mode": {facts: Facts{Cluster: masterInfo("v1.24.3")},
			spec: v1alpha1.CustomSchedulerSpec{Credentials: "magic"}, says: `invalid credentials "magic"`, hint: "serviceaccount"},
		"one node's API server": {facts: Facts{Cluster: kubeadmInfo(nil), Node: ofNodeA()},
			says: "names the API server of node a (https://10.0.0.1:6443)", hint: "--credentials hostpath"},
		"not on a master": {facts: Facts{Cluster: masterInfo("v1.24.3")},
			spec: v1alpha1.CustomSchedulerSpec{Credentials: "node"}, says: "none was found here", hint: "--node-root"},
		"expired": {facts: Facts{Cluster: masterInfo("v1.24.3"), Node: old}, says: "expired on 2026-05-01", hint: "renew",
			valid: true},
		"no control plane": {facts: Facts{Cluster: noMaster}, says: "no node has a label of control-plane nodes",
			hint: "--node-selector any"},
		"nodes not listed": {facts: Facts{Cluster: blind}, says: "nodes could not be listed", hint: "permission to list nodes",
			valid: true},
		"hosted, node's credentials": {facts: Facts{Cluster: hosted, Node: nodeCredentials()},
			spec: v1alpha1.CustomSchedulerSpec{Credentials: "hostpath"},
			says: "the control plane (Kamaji) has no nodes in the cluster", hint: "--credentials serviceaccount"},
		"any node, node's credentials": {
			facts: Facts{Cluster: noMaster, Node: nodeCredentials()},
			spec:  v1alpha1.CustomSchedulerSpec{AnyNode: true}, says: "--node-selector any", hint: "--credentials serviceaccount",
		},
		"port taken": {facts: Facts{Cluster: masterInfo("v1.24.3")},
			spec: v1alpha1.CustomSchedulerSpec{Ports: v1alpha1.Ports{Secure: 10259}},
			says: "port 10259 is in use by pod kube-system/k8s-master", hint: "10260"},
		"no such port": {facts: Facts{Cluster: masterInfo("v1.24.3")},
			spec: v1alpha1.CustomSchedulerSpec{Ports: v1alpha1.Ports{Secure: 70000}}, says: "invalid port 70000",
			hint: "cannot listen on ports below 1024"},
		"no port free": {facts: Facts{Cluster: full}, says: "is free on the control-plane nodes", hint: "--port", valid: true},
		"bad configuration": {facts: Facts{Cluster: masterInfo("v1.24.3")},
			spec: v1alpha1.CustomSchedulerSpec{Configuration: v1alpha1.Configuration{Inline: "kind: Pod\n", File: "c.yaml"}},
			says: "c.yaml", hint: "start the file with `apiVersion: kubescheduler.config.k8s.io/v1`"},
		"no such preset": {facts: Facts{Cluster: masterInfo("v1.24.3")},
			spec: v1alpha1.CustomSchedulerSpec{Configuration: v1alpha1.Configuration{Preset: "binpak"}}, says: "binpak",
			hint: `did you mean "binpack"?`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.facts.Image, tt.facts.Now = "localhost/my-scheduler:v1", now
			_, err := PlanInput{Name: cmp.Or(tt.name, "my-scheduler"), Spec: tt.spec, Facts: tt.facts}.Plan()
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q does not say %q", err, tt.says)
			}
			if got := hintOf(err); tt.hint == "" || !strings.Contains(got, tt.hint) {
				t.Errorf("hint %q does not say %q", got, tt.hint)
			}
			var input interface{ Invalid() bool }
			if got := errors.As(err, &input) && input.Invalid(); got == tt.valid {
				t.Errorf("invalid input: %v, want %v (%T)", got, !tt.valid, err)
			}
		})
	}
}

func TestCommandNamesANamespaceThatIsNotTheDefault(t *testing.T) {
	for namespace, want := range map[string]string{
		"kube-system": "pmk-sched verify --name x",
		"other":       "pmk-sched -n other verify --name x",
	} {
		if got := (&Plan{Name: "x", Namespace: namespace}).Command("verify"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
