//go:build linux

package lab

import (
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// Directories on a control-plane host. The scheduler's kubeconfig has a path that no distribution
// uses: the host is not a control-plane node.
const (
	hostedDir = "/etc/kubernetes/hosted"
	hostedPKI = hostedDir + "/pki"
)

// hostedLayout is a hosted control plane, as managed services and Cluster API with Kamaji or
// HyperShift run it: the API servers are reached at one address, the nodes are workers, and no node
// has a file of the control plane.
func hostedLayout() layout {
	const pki = "/var/lib/kubelet/pki/"
	return layout{
		name:                 LayoutHosted,
		port:                 kubeadm.Port,
		admin:                hostedDir + "/admin.conf",
		kubelet:              "/etc/kubernetes/kubelet.conf",
		proxy:                "/var/lib/kube-proxy/kubeconfig.conf",
		kubeletCA:            "/etc/kubernetes/pki/ca.crt",
		kubeletServing:       [2]string{pki + "kubelet.crt", pki + "kubelet.key"},
		kubeletBinary:        "/var/lib/kubelet/bin/kubelet",
		kubeletAuthorization: "Webhook",
		nodeName:             func(hostName, _ string) string { return hostName },
		identities:           hostedWorkerIdentities,
		settings:             func(nodeConfig) ([]file, error) { return nil, nil },
	}
}

// zoneName returns the availability zone of the worker with an index: two zones in turn.
func zoneName(worker int) string { return "zone-" + strconv.Itoa(worker%2+1) }

// hostedAccess returns a kubeconfig for the address of the control plane.
func hostedAccess(n nodeConfig, user string, pair certificates.Pair) access {
	return access{server: "https://" + n.endpoint.String(), cluster: "hosted", user: user,
		contexts: []contextName{{name: user + "@hosted"}}, ca: n.keys.ca.Cert, pair: pair}
}

// hostedWorkerIdentities returns a worker's keys. It has no control-plane keys.
func hostedWorkerIdentities(n nodeConfig) ([]file, error) {
	l, k := hostedLayout(), n.keys
	configs, err := kubeconfigs([]kubeconfigAt{
		{l.kubelet, hostedAccess(n, "system:node:"+n.name, k.kubelet)},
		{l.proxy, hostedAccess(n, "system:kube-proxy", k.proxy)},
	})
	return append(configs,
		file{l.kubeletCA, 0o644, k.ca.Cert},
		file{l.kubeletServing[0], 0o644, k.kubeletServer.Cert},
		file{l.kubeletServing[1], 0o600, k.kubeletServer.Key},
	), err
}

// hostedIdentities returns the keys for a control-plane host. Its controller-manager and scheduler
// use the host's API server.
func hostedIdentities(n nodeConfig) ([]file, error) {
	k := n.keys
	local := func(user string, pair certificates.Pair) access {
		a := hostedAccess(n, user, pair)
		a.server = "https://localhost:" + strconv.Itoa(kubeadm.Port)
		return a
	}
	files, err := kubeconfigs([]kubeconfigAt{
		{hostedDir + "/admin.conf", hostedAccess(n, "kubernetes-admin", k.admin)},
		{hostedDir + "/controller-manager.conf", local("system:kube-controller-manager", k.manager)},
		{hostedDir + "/scheduler.conf", local("system:kube-scheduler", k.scheduler)},
	})
	files = append(files,
		file{hostedPKI + "/ca.crt", 0o644, k.ca.Cert},
		file{hostedPKI + "/front-proxy-ca.crt", 0o644, k.frontProxyCA.Cert},
		file{hostedPKI + "/etcd-ca.crt", 0o644, k.etcdCA.Cert},
		file{hostedPKI + "/sa.key", 0o600, k.serviceAccount.Key},
	)
	return append(files, keyFiles(hostedPKI, map[string]certificates.Pair{
		"apiserver": k.apiServer, "apiserver-kubelet-client": k.kubeletClient, "front-proxy-client": k.frontProxyClient,
		"etcd-client": k.etcdClient,
	})...), err
}

// hostedSettings returns the files for a control-plane host that depend on the release.
func hostedSettings(n nodeConfig) ([]file, error) {
	scheduler, err := asYAML("scheduler configuration", map[string]any{
		"apiVersion":       n.rules.Render,
		"kind":             "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": hostedDir + "/scheduler.conf"},
	})
	return []file{{hostedDir + "/scheduler.yaml", 0o644, scheduler}}, err
}

// etcdAddress returns where the API servers reach the etcd of a hosted control plane.
func etcdAddress(endpoint netip.AddrPort) string {
	return "https://" + netip.AddrPortFrom(endpoint.Addr(), 2379).String()
}

// hostedEtcd returns the etcd that all API servers use. dir holds its data and certificates.
func hostedEtcd(binary, dir string, endpoint netip.AddrPort) daemon {
	const peer = "http://127.0.0.1:2380"
	at := in(filepath.Join(dir, "pki"))
	return daemon{"etcd", []string{binary, "--name=lab", "--data-dir=" + filepath.Join(dir, "data"),
		"--listen-client-urls=" + etcdAddress(endpoint), "--advertise-client-urls=" + etcdAddress(endpoint),
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=lab=" + peer,
		"--client-cert-auth", at("trusted-ca-file", "ca.crt"), at("cert-file", "server.crt"), at("key-file", "server.key"),
	}}
}

// hostedDaemons returns the programs on a control-plane host, the API server first. binary returns
// a program's path.
func hostedDaemons(n nodeConfig, binary func(string) string) []daemon {
	at := in(hostedDir)
	restarted := func(name string, args ...string) daemon {
		return daemon{name, append([]string{"sh", "-c", supervise, "sh", binary(name)}, args...)}
	}
	return []daemon{
		{"kube-apiserver", append([]string{binary("kube-apiserver")}, hostedAPIServer(n)...)},
		restarted("kube-controller-manager",
			at("kubeconfig", "controller-manager.conf"),
			"--leader-elect=true",
			"--profiling=false",
			at("root-ca-file", "pki/ca.crt"),
			at("service-account-private-key-file", "pki/sa.key"),
			"--use-service-account-credentials=true",
			"--node-monitor-grace-period=40s",
			"--v=2"),
		restarted("kube-scheduler", at("config", "scheduler.yaml"), "--leader-elect=true", "--profiling=false", "--v=2"),
	}
}

// hostedAPIServer returns an API server's flags. All API servers have the load balancer's address
// as their own, and the lab writes the endpoints of the Service kubernetes: an API server that
// stops does not remove the address that the other API servers still serve.
func hostedAPIServer(n nodeConfig) []string {
	at := in(hostedPKI)
	args := []string{
		"--advertise-address=" + n.endpoint.Addr().String(),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--bind-address=0.0.0.0",
		at("client-ca-file", "ca.crt"),
		"--default-not-ready-toleration-seconds=60",
		"--default-unreachable-toleration-seconds=60",
		"--enable-admission-plugins=NodeRestriction",
		"--endpoint-reconciler-type=none",
		at("etcd-cafile", "etcd-ca.crt"),
		at("etcd-certfile", "etcd-client.crt"),
		at("etcd-keyfile", "etcd-client.key"),
		"--etcd-servers=" + etcdAddress(n.endpoint),
		at("kubelet-client-certificate", "apiserver-kubelet-client.crt"),
		at("kubelet-client-key", "apiserver-kubelet-client.key"),
		"--profiling=false",
		at("proxy-client-cert-file", "front-proxy-client.crt"),
		at("proxy-client-key-file", "front-proxy-client.key"),
		"--requestheader-allowed-names=front-proxy-client",
		at("requestheader-client-ca-file", "front-proxy-ca.crt"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--secure-port=" + strconv.Itoa(kubeadm.Port),
		"--service-account-issuer=https://kubernetes.default.svc",
		at("service-account-key-file", "sa.key"),
		at("service-account-signing-key-file", "sa.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		at("tls-cert-file", "apiserver.crt"),
		at("tls-private-key-file", "apiserver.key"),
		"--v=2",
	}
	if n.rules.InsecurePort {
		args = append(args, "--insecure-port=0")
	}
	return args
}
