package deploy

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

// A kubeconfig of kubeadm names one node. The API server that the replicas use depends on the
// cluster.
func TestReplicasDoNotDependOnOneNode(t *testing.T) {
	const (
		local, kubeadm = "https://127.0.0.1:6443", "kubernetes.default.svc"
		balanced       = "https://api.example.com:6443"
	)
	for name, tc := range map[string]struct {
		change       func(*inspect.Info, *inspect.NodeCredentials, *PlanInput)
		server, name string
		refused      bool
	}{
		"every address": {server: local, name: kubeadm},
		"every address of IPv6": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) { setBind(info, "::") },
			server: "https://[::1]:6443", name: kubeadm,
		},
		"another port": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) {
				for i := range info.ControlPlane.Nodes {
					info.ControlPlane.Nodes[i].APIServer = &inspect.APIServer{Port: 8443, BindAddress: "0.0.0.0"}
				}
			},
			server: "https://127.0.0.1:8443", name: kubeadm,
		},
		"different ports": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) {
				info.ControlPlane.Nodes[1].APIServer = &inspect.APIServer{Port: 8443, BindAddress: "0.0.0.0"}
			},
			refused: true,
		},
		"one address": {
			change:  func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) { setBind(info, "10.0.0.1") },
			refused: true,
		},
		"one address, with an endpoint": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) {
				setBind(info, "10.0.0.1")
				info.ControlPlane.Endpoint = "api.example.com:6443"
			},
			server: balanced,
		},
		"one address, with an endpoint that is a node": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) {
				setBind(info, "10.0.0.1")
				info.ControlPlane.Endpoint = "192.0.2.1:6443"
			},
			refused: true,
		},
		"API server unknown": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) {
				info.ControlPlane.Nodes[1].APIServer = nil
			},
			refused: true,
		},
		"API server unknown of a node that is down": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) {
				info.ControlPlane.Nodes[1].APIServer, info.ControlPlane.Nodes[1].Ready = nil, false
			},
			server: local, name: kubeadm,
		},
		"other nodes": {
			change: func(_ *inspect.Info, _ *inspect.NodeCredentials, o *PlanInput) {
				o.Spec.NodeSelector = map[string]string{"role": "infra"}
			},
			refused: true,
		},
		"some control-plane nodes": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, o *PlanInput) {
				o.Spec.NodeSelector = map[string]string{info.ControlPlane.LabelKey: "", "zone": "a"}
			},
			server: local, name: kubeadm,
		},
		"other nodes, with an endpoint": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, o *PlanInput) {
				o.Spec.NodeSelector = map[string]string{"role": "infra"}
				info.ControlPlane.Endpoint = "api.example.com:6443"
			},
			server: balanced,
		},
		"kubeconfig names the node": {
			change: func(_ *inspect.Info, c *inspect.NodeCredentials, _ *PlanInput) { c.Server = "https://a:6443" },
			server: local, name: kubeadm,
		},
		"kubeconfig names another address of the node": {
			change: func(_ *inspect.Info, c *inspect.NodeCredentials, _ *PlanInput) { c.Server = "https://192.0.2.1:6443" },
			server: local, name: kubeadm,
		},
		"kubeconfig names no node": {
			change: func(_ *inspect.Info, c *inspect.NodeCredentials, _ *PlanInput) { c.Server = balanced },
			server: balanced,
		},
		"kubeconfig names no node, and a name": {
			change: func(_ *inspect.Info, c *inspect.NodeCredentials, _ *PlanInput) {
				c.Server, c.ServerName = "https://198.51.100.1", "api.example.com"
			},
			server: "https://198.51.100.1", name: "api.example.com",
		},
		"one control-plane node": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) {
				info.ControlPlane.Count, info.ControlPlane.Nodes = 1, info.ControlPlane.Nodes[:1]
			},
			server: "https://10.0.0.1:6443",
		},
		"another layout": {
			change:  func(info *inspect.Info, _ *inspect.NodeCredentials, _ *PlanInput) { info.Layout = "unknown" },
			refused: true,
		},
		"hostpath": {
			change: func(_ *inspect.Info, _ *inspect.NodeCredentials, o *PlanInput) {
				o.Spec.Credentials = CredentialsHostPath
			},
			server: "https://10.0.0.1:6443",
		},
		"inline": {
			change: func(_ *inspect.Info, _ *inspect.NodeCredentials, o *PlanInput) {
				o.Spec.Credentials = CredentialsNodeInline
			},
			server: local, name: kubeadm,
		},
		"what the user accepts": {
			change: func(info *inspect.Info, _ *inspect.NodeCredentials, o *PlanInput) {
				info.Layout, o.Spec.Credentials = "unknown", CredentialsNode
			},
			server: "https://10.0.0.1:6443",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: kubeadmInfo(everyAddress()), Node: ofNodeA(),
				Image: "registry.example.com/my-scheduler:v1", Now: now}}
			if tc.change != nil {
				tc.change(o.Cluster, o.Node, &o)
			}
			plan, err := o.Plan()
			if tc.refused {
				if err == nil {
					t.Errorf("every replica uses %s", plan.Scheduler.Credentials.Server)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := plan.Scheduler.Credentials; c.Server != tc.server || c.ServerName != tc.name {
				t.Errorf("got %s, %q, want %s, %q", c.Server, c.ServerName, tc.server, tc.name)
			}
		})
	}
}

func setBind(info *inspect.Info, address string) {
	for i := range info.ControlPlane.Nodes {
		info.ControlPlane.Nodes[i].APIServer = &inspect.APIServer{Port: 6443, BindAddress: address}
	}
}

// A kubeconfig of PMK names localhost, which is another API server on each node.
func TestReplicasOnPMKUseTheirOwnNode(t *testing.T) {
	for name, tc := range map[string]struct {
		change          func(*inspect.Info, *PlanInput)
		refused, warned string
	}{
		"the same port everywhere": {},
		"a node that is down, whose API server is unknown": {
			change: func(info *inspect.Info, _ *PlanInput) {
				info.ControlPlane.Nodes[2].APIServer, info.ControlPlane.Nodes[2].Ready = nil, false
			},
			warned: "start when their nodes are ready",
		},
		"another port": {
			change:  func(info *inspect.Info, _ *PlanInput) { info.ControlPlane.Nodes[2].APIServer.Port = 6443 },
			refused: "that of node 10.0.0.3 is at 0.0.0.0:6443",
		},
		"not on loopback": {
			change:  func(info *inspect.Info, _ *PlanInput) { info.ControlPlane.Nodes[1].APIServer.BindAddress = "10.0.0.2" },
			refused: "that of node 10.0.0.2 is at 10.0.0.2:443",
		},
		"another port, which the user accepts": {
			change: func(info *inspect.Info, o *PlanInput) {
				info.ControlPlane.Nodes[2].APIServer.Port, o.Spec.Credentials = 6443, CredentialsNode
			},
			warned: "a replica there cannot use https://localhost:443",
		},
		"another port, and each node's own kubeconfig": {
			change: func(info *inspect.Info, o *PlanInput) {
				info.ControlPlane.Nodes[2].APIServer.Port, o.Spec.Credentials = 6443, CredentialsHostPath
			},
		},
		"other nodes": {
			change: func(_ *inspect.Info, o *PlanInput) { o.Spec.NodeSelector = map[string]string{"role": "infra"} },
			warned: "must be control-plane nodes",
		},
		"other nodes of a cluster with one control-plane node": {
			change: func(info *inspect.Info, o *PlanInput) {
				info.ControlPlane.Count, info.ControlPlane.Nodes = 1, info.ControlPlane.Nodes[:1]
				o.Spec.NodeSelector = map[string]string{"role": "infra"}
			},
			warned: "must be control-plane nodes",
		},
		"some control-plane nodes": {
			change: func(info *inspect.Info, o *PlanInput) {
				o.Spec.NodeSelector = map[string]string{info.ControlPlane.LabelKey: "", "zone": "a"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			info := masterInfo("v1.24.3")
			info.Layout, info.ControlPlane.Count, info.ControlPlane.Nodes = "pmk", 3, pmkNodes("10.0.0.1", "10.0.0.2",
				"10.0.0.3")
			o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: info, Node: nodeCredentials(),
				Image: "registry.example.com/my-scheduler:v1", Now: now}}
			if tc.change != nil {
				tc.change(info, &o)
			}
			plan, err := o.Plan()
			if tc.refused != "" {
				if !problem.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Scheduler.Credentials.Server; got != "https://localhost:443" {
				t.Errorf("the replicas use %s", got)
			}
			if got := strings.Join(plan.Warnings, "\n"); tc.warned != "" && !strings.Contains(got, tc.warned) ||
				tc.warned == "" && got != "" {
				t.Errorf("warnings %q", got)
			}
		})
	}
}
