//go:build linux

package lab

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

const (
	pmkDir      = "/etc/pf9/kube.d"
	etcdPeerDir = pmkDir + "/certs/etcd/peer"
)

// pmkLayout is Platform9 Managed Kubernetes as its public node agent sets it up (platform9/nodelet,
// pf9-kube/conf): the kubelet watches a single file with one static pod, and the control-plane
// taint has a value.
func pmkLayout() layout {
	return layout{
		name:       LayoutPMK,
		port:       443,
		admin:      pmkDir + "/kubeconfigs/admin.yaml",
		kubelet:    pmkDir + "/kubeconfigs/kubelet.yaml",
		proxy:      pmkDir + "/kubeconfigs/kube-proxy.yaml",
		staticPods: pmkDir + "/master.yaml",
		kubeletCA:  pmkDir + "/certs/kubelet/server/ca.crt",
		kubeletServing: [2]string{pmkDir + "/certs/kubelet/server/request.crt",
			pmkDir + "/certs/kubelet/server/request.key"},
		kubeletBinary:        "/opt/pf9/pf9-kube/bin/kubelet",
		kubeletAuthorization: "AlwaysAllow",
		nodeName:             func(_, address string) string { return address },
		labels:               map[string]string{"node-role.kubernetes.io/master": ""},
		taints: []corev1.Taint{{Key: "node-role.kubernetes.io/master", Value: "true",
			Effect: corev1.TaintEffectNoSchedule}},
		controlPlane: []string{"k8s-master"},
		identities:   pmkIdentities,
		settings:     pmkSettings,
	}
}

func pmkIdentities(n nodeConfig) ([]file, error) {
	configs, err := pmkKubeconfigs(n)
	if err != nil {
		return nil, err
	}
	k := n.keys
	files := []file{
		{pmkDir + "/certs/apiserver/ca.crt", 0o644, k.ca.Cert},
		{pmkDir + "/certs/apiserver/svcacct.key", 0o600, k.serviceAccount.Key},
		{pmkDir + "/certs/aggregator/ca.crt", 0o644, k.frontProxyCA.Cert},
		{pmkDir + "/certs/kubelet/server/ca.crt", 0o644, k.ca.Cert},
	}
	for dir, pair := range map[string]certificates.Pair{
		"apiserver": k.apiServer, "aggregator": k.frontProxyClient,
		"kubelet/apiserver": k.kubeletClient, "kubelet/server": k.kubeletServer,
	} {
		files = append(files, keyFiles(pmkDir+"/certs/"+dir, map[string]certificates.Pair{"request": pair})...)
	}
	if len(n.members) > 0 {
		files = append(files, file{etcdPeerDir + "/ca.crt", 0o644, k.ca.Cert})
		files = append(files, keyFiles(etcdPeerDir, map[string]certificates.Pair{"request": k.etcdPeer})...)
	}
	return append(files, configs...), nil
}

func pmkSettings(n nodeConfig) ([]file, error) {
	manifest, err := pmkManifest(n)
	if err != nil {
		return nil, err
	}
	scheduler, err := asYAML("scheduler configuration", map[string]any{
		"apiVersion":       n.rules.Render,
		"kind":             "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": "/srv/kubernetes/kubeconfigs/kube-scheduler.yaml"},
	})
	if err != nil {
		return nil, err
	}
	return []file{
		{pmkDir + "/configs/kube-scheduler.yaml", 0o644, scheduler},
		{pmkDir + "/master.yaml", 0o644, manifest},
	}, nil
}

func pmkKubeconfigs(n nodeConfig) ([]file, error) {
	at := func(name, user string, pair certificates.Pair, contexts ...contextName) kubeconfigAt {
		return kubeconfigAt{pmkDir + "/kubeconfigs/" + name + ".yaml", access{
			server: "https://localhost:443", cluster: "local", user: user,
			contexts: contexts, ca: n.keys.ca.Cert, pair: pair,
		}}
	}
	service := contextName{name: "service-account-context"}
	return kubeconfigs([]kubeconfigAt{
		at("admin", "admin", n.keys.admin, contextName{"default-context", "default"},
			contextName{"system-context", "kube-system"}),
		at("kube-scheduler", "system:kube-scheduler", n.keys.scheduler, service),
		at("kube-controller-manager", "system:kube-controller-manager", n.keys.manager, service),
		at("kube-proxy", "system:kube-proxy", n.keys.proxy, service),
		at("kubelet", "system:node:"+n.name, n.keys.kubelet, contextName{name: "default-context"}),
	})
}

func pmkManifest(n nodeConfig) ([]byte, error) {
	const srv = "/srv/kubernetes"
	certs := hostMount{name: "apiserver-certs", host: pmkDir + "/certs/apiserver", container: srv + "/certs/apiserver"}
	aggregator := hostMount{name: "aggregator-certs", host: pmkDir + "/certs/aggregator",
		container: srv + "/certs/aggregator"}
	kubeletClient := hostMount{name: "kubelet-client-certs", host: pmkDir + "/certs/kubelet/apiserver",
		container: srv + "/certs/kubelet/apiserver"}
	kubeconfigs := hostMount{name: "kubeconfigs", host: pmkDir + "/kubeconfigs", container: srv + "/kubeconfigs"}
	configs := hostMount{name: "configs", host: pmkDir + "/configs", container: srv + "/configs"}
	at := in(srv)
	return staticPod("k8s-master",
		component{name: "kube-controller-manager", release: n.release, mounts: []hostMount{certs, kubeconfigs},
			args: []string{
				at("kubeconfig", "kubeconfigs/kube-controller-manager.yaml"),
				"--leader-elect=true",
				"--profiling=false",
				at("root-ca-file", "certs/apiserver/ca.crt"),
				at("service-account-private-key-file", "certs/apiserver/svcacct.key"),
				"--use-service-account-credentials=true",
				"--node-monitor-grace-period=40s",
				"--v=2",
			}},
		component{name: "kube-apiserver", release: n.release, mounts: []hostMount{certs, aggregator, kubeletClient},
			args: pmkAPIServer(n, at)},
		component{name: "kube-scheduler", release: n.release, mounts: []hostMount{kubeconfigs, configs},
			args: append([]string{
				at("config", "configs/kube-scheduler.yaml"),
				"--leader-elect=true",
				"--profiling=false",
				"--v=2",
			}, n.schedulerFlags...)},
	)
}

func pmkAPIServer(n nodeConfig, at func(flag, file string) string) []string {
	args := []string{
		"--advertise-address=" + n.address.String(),
		"--allow-privileged=true",
		"--anonymous-auth=false",
		"--authorization-mode=RBAC,Node",
		"--bind-address=0.0.0.0",
		at("client-ca-file", "certs/apiserver/ca.crt"),
		"--default-not-ready-toleration-seconds=60",
		"--default-unreachable-toleration-seconds=60",
		"--etcd-servers=" + etcdURL,
		"--http2-max-streams-per-connection=1000",
		at("kubelet-client-certificate", "certs/kubelet/apiserver/request.crt"),
		at("kubelet-client-key", "certs/kubelet/apiserver/request.key"),
		"--profiling=false",
		at("proxy-client-cert-file", "certs/aggregator/request.crt"),
		at("proxy-client-key-file", "certs/aggregator/request.key"),
		"--requestheader-allowed-names=front-proxy-client",
		at("requestheader-client-ca-file", "certs/aggregator/ca.crt"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--secure-port=" + strconv.Itoa(pmkLayout().port),
		"--service-account-issuer=https://localhost:443",
		at("service-account-key-file", "certs/apiserver/svcacct.key"),
		at("service-account-signing-key-file", "certs/apiserver/svcacct.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--storage-media-type=application/json",
		at("tls-cert-file", "certs/apiserver/request.crt"),
		at("tls-private-key-file", "certs/apiserver/request.key"),
		"--v=2",
	}
	if n.rules.InsecurePort {
		args = append(args, "--insecure-port=0")
	}
	return args
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
