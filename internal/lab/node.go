//go:build linux

package lab

import (
	"io/fs"
	"net"
	"net/netip"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/certificates"
	"github.com/pmk-sched/pmk-sched/versions"
)

// nodeConfig is the data from which the files of a control-plane node are rendered. It is plain
// data, so that tests can compare the files with golden files.
type nodeConfig struct {
	release versions.Release
	rules   versions.Rules
	// name is the name of the Node object.
	name string
	// address is the address of the node, pods the network of its pods.
	address netip.Addr
	pods    netip.Prefix
	keys    credentials
}

// credentials are all keys and certificates of a cluster with one control-plane node.
type credentials struct {
	ca, frontProxyCA                certificates.Pair
	serviceAccount                  certificates.Pair // cert is the public key
	apiServer, kubeletServer        certificates.Pair // serving
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

// newCredentials creates the keys of a cluster: a CA for the cluster and one for the front proxy,
// which API servers require since 1.37.
func newCredentials(nodeName string, host string, address netip.Addr, now time.Time) (credentials, error) {
	var c credentials
	ca, err := newAuthority("kubernetes", now)
	if err != nil {
		return c, err
	}
	front, err := newAuthority("front-proxy-ca", now)
	if err != nil {
		return c, err
	}
	c.ca, c.frontProxyCA = ca.Pair, front.Pair
	if c.serviceAccount, err = serviceAccountKeys(); err != nil {
		return c, err
	}
	own := net.IP(address.AsSlice())
	loopback := net.IPv4(127, 0, 0, 1)
	for _, w := range []struct {
		to *certificates.Pair
		by *certificates.Authority
		id identity
	}{
		{&c.apiServer, ca, identity{name: "kube-apiserver", server: true, ips: []net.IP{own, loopback, net.ParseIP(serviceIP)},
			dns: []string{"localhost", host, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}}},
		{&c.kubeletServer, ca, identity{name: "system:node:" + nodeName, groups: []string{"system:nodes"}, server: true, ips: []net.IP{own, loopback}, dns: []string{host}}},
		{&c.kubeletClient, ca, identity{name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}}},
		{&c.frontProxyClient, front, identity{name: "front-proxy-client"}},
		{&c.admin, ca, identity{name: "kubernetes-admin", groups: []string{"system:masters"}}},
		{&c.scheduler, ca, identity{name: "system:kube-scheduler", groups: []string{"system:kube-scheduler"}}},
		{&c.manager, ca, identity{name: "system:kube-controller-manager", groups: []string{"system:kube-controller-manager"}}},
		{&c.kubelet, ca, identity{name: "system:node:" + nodeName, groups: []string{"system:nodes"}}},
		{&c.proxy, ca, identity{name: "system:kube-proxy", groups: []string{"system:node-proxier"}}},
	} {
		if *w.to, err = w.by.Sign(certificate(w.id, now)); err != nil {
			return c, err
		}
	}
	return c, nil
}
