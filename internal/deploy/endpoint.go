package deploy

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/pmk-sched/pmk-sched/internal/base/loopback"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
)

// chooseServer chooses the API server for credentials copied from one of several control-plane
// nodes. kubeadm's kubeconfig names one node's API server, and all replicas would depend on that
// node. Instead, each replica uses the local API server over loopback, or all replicas use the
// cluster's endpoint. auto reports whether the user did not choose the credentials.
func (p *planner) chooseServer(auto bool) error {
	credentials := &p.plan.Scheduler.Credentials
	server, err := url.Parse(p.Node.Server)
	if err != nil || p.Cluster == nil || credentials.Mode == CredentialsHostPath {
		return nil //nolint:nilerr // the URL is checked with the other credentials
	}
	if loopback.Is(server.Hostname()) && !p.onControlPlane() {
		p.warn(
			"replicas use the API server of their own node (%s): nodes with the labels of --node-selector must be "+
				"control-plane nodes", credentials.Server)
	}
	if p.Cluster.ControlPlane.Count < 2 {
		return nil
	}
	node, found := p.Cluster.ControlPlane.NodeAt(server.Hostname())
	layout, _ := inspect.LayoutNamed(p.Cluster.Layout)
	local, endpoint := p.localServer(layout), p.clusterEndpoint()
	switch {
	case !found && loopback.Is(server.Hostname()):
		if err := p.checkLoopback(server, auto); err != nil {
			return err
		}
		p.note("API server %s: each replica uses that of its node", credentials.Server)
	case !found:
		p.note("API server %s: this node's kubeconfig names it for all replicas", credentials.Server)
	case local != "":
		credentials.Server, credentials.ServerName = "https://"+local, layout.APIServerName
		p.note("API server %s: each replica uses that of its node", credentials.Server)
	case endpoint != "":
		credentials.Server, credentials.ServerName = "https://"+endpoint, ""
		p.note("API server %s: all replicas use the cluster's controlPlaneEndpoint", credentials.Server)
	case auto:
		return problem.Invalidf(
			"use --credentials hostpath, with which each replica uses its own node's kubeconfig, or --credentials "+
				"serviceaccount; with --credentials "+credentials.Mode+" all use that of node "+node,
			"with several control-plane nodes a scheduler must not depend on one: this node's kubeconfig names the API server "+
				"of node %s (%s), and no address serves all replicas", node, p.Node.Server)
	default:
		p.warn(
			"every replica uses the API server of node %s, which this node's kubeconfig names (%s): with --credentials "+
				"hostpath each uses that of its node", node, p.Node.Server)
	}
	return p.listEndpoints(credentials.Server != p.Node.Server)
}

// onControlPlane reports whether replicas run only on control-plane nodes.
func (p *planner) onControlPlane() bool {
	_, selected := p.request.Spec.NodeSelector[p.Cluster.ControlPlane.LabelKey]
	return len(p.request.Spec.NodeSelector) == 0 || selected
}

// checkLoopback refuses a kubeconfig that names loopback, as PMK's do, if API servers on other
// nodes have another port or do not listen on loopback: a copied kubeconfig does not serve there.
func (p *planner) checkLoopback(server *url.URL, auto bool) error {
	port := cmp.Or(server.Port(), "443")
	for _, node := range p.Cluster.ControlPlane.Nodes {
		if node.APIServer == nil || node.APIServer.ServesLoopback() && strconv.Itoa(node.APIServer.Port) == port {
			continue
		}
		at := net.JoinHostPort(node.APIServer.BindAddress, strconv.Itoa(node.APIServer.Port))
		if !auto {
			p.warn("the API server of node %s is at %s: a replica there cannot use %s, which this node's kubeconfig names",
				node.Name, at, p.Node.Server)
			continue
		}
		return problem.Invalidf(
			"use --credentials hostpath, with which each replica uses its own node's kubeconfig, or --credentials "+
				"serviceaccount",
			"this node's kubeconfig names the API server at %s, and that of node %s is at %s", p.Node.Server, node.Name, at)
	}
	return nil
}

// localServer returns the address at which every control-plane node reaches its own API server, or
// "" if there is no such address. The API server on a node that is not ready may be unknown.
func (p *planner) localServer(layout inspect.Layout) string {
	if layout.APIServerName == "" || !p.onControlPlane() {
		return ""
	}
	local := ""
	for _, node := range p.Cluster.ControlPlane.Nodes {
		if node.APIServer == nil {
			if node.Ready {
				return ""
			}
			continue
		}
		address := loopbackOf(node.APIServer)
		if address == "" || local != "" && address != local {
			return ""
		}
		local = address
	}
	return local
}

// loopbackOf returns an API server's address on loopback, or "".
func loopbackOf(server *inspect.APIServer) string {
	if !server.ServesLoopback() {
		return ""
	}
	host := "127.0.0.1"
	if address, err := netip.ParseAddr(server.BindAddress); err == nil && address.Is6() {
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(server.Port))
}

// clusterEndpoint returns the cluster's controlPlaneEndpoint, or "" if it is one node's address or
// loopback.
func (p *planner) clusterEndpoint() string {
	host, _, err := net.SplitHostPort(p.Cluster.ControlPlane.Endpoint)
	if _, single := p.Cluster.ControlPlane.NodeAt(host); err != nil || single || loopback.Is(host) {
		return ""
	}
	return p.Cluster.ControlPlane.Endpoint
}

// listEndpoints lists the API server addresses that this machine can check. If the server is on
// loopback, these are the addresses of all ready nodes' API servers.
func (p *planner) listEndpoints(chosen bool) error {
	credentials := p.plan.Scheduler.Credentials
	server, err := url.Parse(credentials.Server)
	if err != nil {
		return err
	}
	here := p.Cluster.Node.ControlPlane && p.Cluster.Node.Root == "/"
	e := preflight.Endpoint{
		Address:    net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")),
		ServerName: cmp.Or(credentials.ServerName, server.Hostname()), CA: credentials.CA, Local: here, Chosen: chosen,
	}
	if !loopback.Is(server.Hostname()) || here {
		p.plan.Endpoints = append(p.plan.Endpoints, e)
	}
	if !loopback.Is(server.Hostname()) {
		return nil
	}
	for _, node := range p.Cluster.ControlPlane.Nodes {
		if node.APIServer == nil || !node.Ready {
			continue
		}
		address := node.APIServer.AdvertiseAddress
		if _, own := p.Cluster.ControlPlane.NodeAt(address); !own {
			address = node.Address
		}
		if bound, err := netip.ParseAddr(node.APIServer.BindAddress); address == "" || err != nil || bound.IsLoopback() {
			continue
		}
		e.Node, e.Address, e.Local = node.Name, net.JoinHostPort(address, strconv.Itoa(node.APIServer.Port)), false
		p.plan.Endpoints = append(p.plan.Endpoints, e)
	}
	return nil
}
