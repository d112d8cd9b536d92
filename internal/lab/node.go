//go:build linux

package lab

import (
	"io/fs"
	"net"
	"net/netip"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/versions"
)

// nodeConfig is the data from which a control-plane node's files are rendered. It is plain data, so
// that tests can compare the files with golden files.
type nodeConfig struct {
	release versions.Release
	rules   versions.Rules
	// name is the Node object's name.
	name string
	// address is the node's address, pods the network for its pods.
	address netip.Addr
	pods    netip.Prefix
	// members are the control-plane nodes, if there are several and the lab itself sets up etcd.
	members []member
	// virtual is the address that one of several control-plane nodes has; invalid without one.
	virtual netip.Addr
	// endpoint is the load balancer in front of a hosted control plane; invalid without one.
	endpoint netip.AddrPort
	// zone is the node's availability zone. It is empty if the nodes have none.
	zone string
	// schedulerFlags are scheduler flags from the node agent's settings.
	schedulerFlags []string
	keys           credentials
}

type member struct {
	name    string
	address netip.Addr
}

// credentials are all keys and certificates of a control-plane node.
type credentials struct {
	ca, frontProxyCA                certificates.Pair
	serviceAccount                  certificates.Pair // cert is the public key
	apiServer, kubeletServer        certificates.Pair // serving
	etcdPeer                        certificates.Pair
	etcdClient, etcdCA              certificates.Pair // of a hosted control plane
	kubeletClient, frontProxyClient certificates.Pair // of the API server
	admin, scheduler, manager       certificates.Pair
	kubelet, proxy                  certificates.Pair
}

// file is one file of a node, with its path on a real control-plane node.
type file struct {
	path string
	mode fs.FileMode
	data []byte
}

// authorities are the CAs and keys that a cluster's control-plane nodes share: a CA for the
// cluster, one for the front proxy, which API servers require since 1.37, and the service account
// keys.
type authorities struct {
	cluster, frontProxy *certificates.Authority
	serviceAccount      certificates.Pair
	// etcd is the CA of a hosted control plane's etcd, which is reached over the network.
	etcd *certificates.Authority
}

func newAuthorities(now time.Time) (a authorities, err error) {
	if a.cluster, err = newAuthority("kubernetes", now); err != nil {
		return a, err
	}
	if a.frontProxy, err = newAuthority("front-proxy-ca", now); err != nil {
		return a, err
	}
	if a.etcd, err = newAuthority("etcd-ca", now); err != nil {
		return a, err
	}
	a.serviceAccount, err = serviceAccountKeys()
	return a, err
}

// credentials creates a control-plane node's keys.
func (a authorities) credentials(n nodeConfig, host string, now time.Time) (credentials, error) {
	var err error
	ca, front := a.cluster, a.frontProxy
	c := credentials{ca: ca.Pair, frontProxyCA: front.Pair, etcdCA: a.etcd.Pair, serviceAccount: a.serviceAccount}
	own := net.IP(n.address.AsSlice())
	loopback := net.IPv4(127, 0, 0, 1)
	serving := []net.IP{own, loopback, net.ParseIP(serviceIP)}
	if n.virtual.IsValid() {
		serving = append(serving, n.virtual.AsSlice())
	}
	if n.endpoint.IsValid() {
		serving = append(serving, n.endpoint.Addr().AsSlice())
	}
	for _, w := range []struct {
		to *certificates.Pair
		by *certificates.Authority
		id identity
	}{
		{&c.apiServer, ca, identity{name: "kube-apiserver", server: true, ips: serving,
			dns: []string{"localhost", host, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local"}}},
		{&c.kubeletServer, ca, identity{name: "system:node:" + n.name, groups: []string{"system:nodes"}, server: true,
			ips: []net.IP{own, loopback}, dns: []string{host}}},
		{&c.kubeletClient, ca, identity{name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}}},
		{&c.frontProxyClient, front, identity{name: "front-proxy-client"}},
		{&c.admin, ca, identity{name: "kubernetes-admin", groups: []string{"system:masters"}}},
		{&c.scheduler, ca, identity{name: "system:kube-scheduler", groups: []string{"system:kube-scheduler"}}},
		{&c.manager, ca,
			identity{name: "system:kube-controller-manager", groups: []string{"system:kube-controller-manager"}}},
		{&c.kubelet, ca, identity{name: "system:node:" + n.name, groups: []string{"system:nodes"}}},
		{&c.proxy, ca, identity{name: "system:kube-proxy", groups: []string{"system:node-proxier"}}},
		{&c.etcdPeer, ca, identity{name: etcdPeerName, server: true, client: true, ips: []net.IP{own, loopback}}},
		{&c.etcdClient, a.etcd, identity{name: etcdPeerName}},
	} {
		if *w.to, err = w.by.Sign(certificate(w.id, now)); err != nil {
			return c, err
		}
	}
	return c, nil
}
