//go:build linux

package lab

import (
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/certificates"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	kubeadmDir = "/etc/kubernetes"
	kubeadmPKI = kubeadmDir + "/pki"
)

// kubeadmLayout is the result of "kubeadm init": a static pod for each component, labels and taints
// by minor (cmd/kubeadm/app/phases/markcontrolplane).
func kubeadmLayout() layout {
	return layout{
		name:                 LayoutKubeadm,
		port:                 6443,
		admin:                kubeadmDir + "/admin.conf",
		kubelet:              kubeadmDir + "/kubelet.conf",
		proxy:                "/var/lib/kube-proxy/kubeconfig.conf",
		staticPods:           kubeadmDir + "/manifests",
		kubeletCA:            kubeadmPKI + "/ca.crt",
		kubeletServing:       [2]string{"/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet.key"},
		kubeletAuthorization: "Webhook",
		nodeName:             func(hostName, _ string) string { return hostName },
		server:               func(address string) string { return "https://" + address + ":6443" },
		labels: func(r versions.Rules) map[string]string {
			labels := map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": ""}
			for _, key := range r.ControlPlaneLabels {
				labels[key] = ""
			}
			return labels
		},
		taints: func(r versions.Rules) []corev1.Taint {
			var taints []corev1.Taint
			for _, key := range r.ControlPlaneTaints {
				taints = append(taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
			}
			return taints
		},
		controlPlane: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"},
		identities:   kubeadmIdentities,
		settings:     kubeadmSettings,
	}
}

func kubeadmIdentities(n nodeConfig) ([]file, error) {
	k := n.keys
	files := keyFiles(kubeadmPKI, map[string]certificates.Pair{
		"ca": k.ca, "apiserver": k.apiServer, "apiserver-kubelet-client": k.kubeletClient,
		"front-proxy-ca": k.frontProxyCA, "front-proxy-client": k.frontProxyClient,
	})
	files = append(files, keyFiles("/var/lib/kubelet/pki", map[string]certificates.Pair{"kubelet": k.kubeletServer})...)
	files = append(files,
		file{kubeadmPKI + "/sa.pub", 0o644, k.serviceAccount.Cert},
		file{kubeadmPKI + "/sa.key", 0o600, k.serviceAccount.Key})
	configs, err := kubeadmKubeconfigs(n)
	if err != nil {
		return nil, err
	}
	return append(files, configs...), nil
}

func kubeadmSettings(n nodeConfig) ([]file, error) {
	var files []file
	for _, c := range []component{kubeadmAPIServer(n), kubeadmControllerManager(n), kubeadmScheduler(n)} {
		manifest, err := staticPod(c.name, map[string]string{"component": c.name, "tier": "control-plane"}, c)
		if err != nil {
			return nil, err
		}
		files = append(files, file{kubeadmDir + "/manifests/" + c.name + ".yaml", 0o600, manifest})
	}
	return files, nil
}

func kubeadmKubeconfigs(n nodeConfig) ([]file, error) {
	l := kubeadmLayout()
	at := func(path, user string, pair certificates.Pair) kubeconfigAt {
		return kubeconfigAt{path, access{
			server: l.server(n.address.String()), cluster: "kubernetes", user: user,
			contexts: []contextName{{name: user + "@kubernetes"}}, ca: n.keys.ca.Cert, pair: pair,
		}}
	}
	return kubeconfigs([]kubeconfigAt{
		at(l.admin, "kubernetes-admin", n.keys.admin),
		at(kubeadmDir+"/scheduler.conf", "system:kube-scheduler", n.keys.scheduler),
		at(kubeadmDir+"/controller-manager.conf", "system:kube-controller-manager", n.keys.manager),
		at(l.kubelet, "system:node:"+n.name, n.keys.kubelet),
		at(l.proxy, "system:kube-proxy", n.keys.proxy),
	})
}

func pkiMount() hostMount {
	return hostMount{name: "k8s-certs", host: kubeadmPKI, container: kubeadmPKI}
}

func kubeadmAPIServer(n nodeConfig) component {
	at := in(kubeadmPKI)
	port := kubeadmLayout().port
	args := []string{
		"--advertise-address=" + n.address.String(),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		at("client-ca-file", "ca.crt"),
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--etcd-servers=" + etcdURL,
		at("kubelet-client-certificate", "apiserver-kubelet-client.crt"),
		at("kubelet-client-key", "apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		at("proxy-client-cert-file", "front-proxy-client.crt"),
		at("proxy-client-key-file", "front-proxy-client.key"),
		"--requestheader-allowed-names=front-proxy-client",
		at("requestheader-client-ca-file", "front-proxy-ca.crt"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--secure-port=" + strconv.Itoa(port),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		at("service-account-key-file", "sa.pub"),
		at("service-account-signing-key-file", "sa.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		at("tls-cert-file", "apiserver.crt"),
		at("tls-private-key-file", "apiserver.key"),
	}
	if n.rules.InsecurePort {
		args = append(args, "--insecure-port=0")
	}
	return component{
		name: "kube-apiserver", release: n.release, args: args, mounts: []hostMount{pkiMount()}, cpu: "250m",
		probes: &probes{host: n.address.String(), port: port, live: "/livez", ready: "/readyz", readinessProbed: true},
	}
}

func kubeadmControllerManager(n nodeConfig) component {
	at, own := in(kubeadmPKI), in(kubeadmDir)
	args := []string{
		own("authentication-kubeconfig", "controller-manager.conf"),
		own("authorization-kubeconfig", "controller-manager.conf"),
		"--bind-address=127.0.0.1",
		at("client-ca-file", "ca.crt"),
		"--cluster-name=kubernetes",
		at("cluster-signing-cert-file", "ca.crt"),
		at("cluster-signing-key-file", "ca.key"),
		"--controllers=*,bootstrapsigner,tokencleaner",
		own("kubeconfig", "controller-manager.conf"),
		"--leader-elect=true",
		at("requestheader-client-ca-file", "front-proxy-ca.crt"),
		at("root-ca-file", "ca.crt"),
		at("service-account-private-key-file", "sa.key"),
		"--use-service-account-credentials=true",
	}
	return component{
		name: "kube-controller-manager", release: n.release, args: closePort(n, args), cpu: "200m",
		mounts: []hostMount{pkiMount(), {name: "kubeconfig", host: kubeadmDir + "/controller-manager.conf", container: kubeadmDir + "/controller-manager.conf", file: true}},
		probes: loopbackProbes(10257, "/healthz", "/healthz"),
	}
}

func kubeadmScheduler(n nodeConfig) component {
	own := in(kubeadmDir)
	args := []string{
		own("authentication-kubeconfig", "scheduler.conf"),
		own("authorization-kubeconfig", "scheduler.conf"),
		"--bind-address=127.0.0.1",
		own("kubeconfig", "scheduler.conf"),
		"--leader-elect=true",
	}
	return component{
		name: "kube-scheduler", release: n.release, args: closePort(n, args), cpu: "100m",
		mounts: []hostMount{{name: "kubeconfig", host: kubeadmDir + "/scheduler.conf", container: kubeadmDir + "/scheduler.conf", file: true}},
		probes: loopbackProbes(versions.SecurePort, n.rules.LivenessPath, n.rules.ReadinessPath),
	}
}

// closePort adds the flag with which kubeadm disables the insecure port in the minors that have
// one.
func closePort(n nodeConfig, args []string) []string {
	if n.rules.InsecurePort {
		return append(args, "--port=0")
	}
	return args
}

func loopbackProbes(port int, live, ready string) *probes {
	return &probes{host: netip.AddrFrom4([4]byte{127, 0, 0, 1}).String(), port: port, live: live, ready: ready}
}
