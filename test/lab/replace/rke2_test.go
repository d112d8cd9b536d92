//go:build linux && labs

package replace

import (
	"context"
	"crypto/md5" //nolint:gosec // RKE2's form of a UID
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	rke2Manifests  = "/var/lib/rancher/rke2/agent/pod-manifests"
	rke2Kubeconfig = "/var/lib/rancher/rke2/server/cred/scheduler.kubeconfig"
	rke2TLS        = "/var/lib/rancher/rke2/server/tls"
)

// RKE2 keeps its static pods elsewhere, mounts each file separately, gives the manifest a UID, and
// writes it again when it starts: status reports that, and replace repairs it.
func TestReplaceOnRKE2(t *testing.T) {
	l := labs.Start(t, labs.Options{Release: labs.Release, Layout: lab.LayoutKubeadm})
	layOutAsRKE2(t, l)
	n := prepare(t, l, rke2Manifests+"/kube-scheduler.yaml")
	n.forgetRestarts(t) // the kubelet reads its configuration again
	run.Eventually(t, "the scheduler runs from RKE2's manifest", func(context.Context) (bool, string) {
		seen := n.Exec(t, "kubectl", "get", "pods", "-n", "kube-system", "-l", "component=kube-scheduler", "-o",
			"jsonpath={.items[*].spec.containers[*].args} {.items[*].status.containerStatuses[*].ready}")
		return strings.Contains(seen.Stdout, rke2Kubeconfig) && strings.HasSuffix(seen.Stdout, "true"), seen.String()
	})
	n.PMKSched(t, "detect").OK(t).Prints(t, "rke2", rke2Kubeconfig)
	replaceAndRestore(t, n)

	image := n.Image(t, "timestamp")
	n.replace(t, "--image", image).OK(t)
	n.Exec(t, "cp", run.WriteFile(t, "original.yaml", string(n.original)), n.manifest).OK(t)
	n.PMKSched(t, "status").Fails(t, 3, "rewritten without the replacement: rke2 does that when it starts")
	n.replace(t, "--image", image).OK(t)
	n.PMKSched(t, "status").OK(t)
	n.restore(t)
}

// layOutAsRKE2 moves the static pods of a node to the directory that RKE2 uses, and writes the
// scheduler's files in RKE2's form (rancher/rke2, pkg/podexecutor and pkg/staticpod).
func layOutAsRKE2(t *testing.T, l *labs.Node) {
	t.Helper()
	ctx := run.Context(t)
	pods, err := l.Kube.CoreV1().Pods("kube-system").List(ctx,
		metav1.ListOptions{LabelSelector: "component=kube-scheduler"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("find the pod of the scheduler: %d pods, %v", len(pods.Items), err)
	}
	files := rke2Credentials(t, l.Exec(t, "cat", "/etc/kubernetes/scheduler.conf").OK(t).Stdout)
	manifest, err := yaml.Marshal(rke2Scheduler(pods.Items[0].Spec.Containers[0].Image))
	if err != nil {
		t.Fatal(err)
	}
	l.Shell(t,
		"mkdir -p $PMK_SCHED_NODE_ROOT/var/lib/rancher /var/lib/rancher && mount --bind "+
			"$PMK_SCHED_NODE_ROOT/var/lib/rancher /var/lib/rancher"+
			" && mkdir -p "+rke2TLS+
			" /var/lib/rancher/rke2/server/cred /var/lib/rancher/rke2/agent && mv /etc/kubernetes/manifests "+rke2Manifests+
			" && rm /etc/kubernetes/scheduler.conf && sed -i 's|^staticPodPath:.*|staticPodPath: "+rke2Manifests+
			"|' /var/lib/kubelet/config.yaml")
	files[rke2Manifests+"/kube-scheduler.yaml"] = string(manifest)
	for path, text := range files {
		l.Exec(t, "cp", run.WriteFile(t, "file", text), path).OK(t)
	}
}

// rke2Credentials returns a kubeconfig that refers to files, and those files, by path.
func rke2Credentials(t *testing.T, kubeconfig string) map[string]string {
	t.Helper()
	c, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	move := func(data *[]byte, to *string, name string) {
		*to = rke2TLS + "/" + name
		files[*to] = string(*data)
		*data = nil
	}
	for _, cluster := range c.Clusters {
		move(&cluster.CertificateAuthorityData, &cluster.CertificateAuthority, "server-ca.crt")
	}
	for _, user := range c.AuthInfos {
		move(&user.ClientCertificateData, &user.ClientCertificate, "client-scheduler.crt")
		move(&user.ClientKeyData, &user.ClientKey, "client-scheduler.key")
	}
	text, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	files[rke2Kubeconfig] = string(text)
	return files
}

// rke2Scheduler is the static pod of the scheduler as RKE2 writes it.
func rke2Scheduler(image string) *corev1.Pod {
	no, file := false, corev1.HostPathFile
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: "/healthz", Host: "localhost", Port: intstr.FromInt32(10259), Scheme: corev1.URISchemeHTTPS,
	}}, PeriodSeconds: 10, TimeoutSeconds: 5, FailureThreshold: 8}
	container := corev1.Container{
		Name: "kube-scheduler", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"kube-scheduler"},
		Args: []string{
			"--permit-port-sharing=true", "--authentication-kubeconfig=" + rke2Kubeconfig, "--authorization-kubeconfig=" +
				rke2Kubeconfig,
			"--bind-address=127.0.0.1", "--kubeconfig=" + rke2Kubeconfig, "--profiling=false", "--secure-port=10259",
		},
		Env:           []corev1.EnvVar{{Name: "FILE_HASH", Value: strings.Repeat("0", 64)}},
		LivenessProbe: probe, StartupProbe: probe,
		SecurityContext: &corev1.SecurityContext{Privileged: &no},
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler", Namespace: "kube-system",
			Labels: map[string]string{"component": "kube-scheduler", "tier": "control-plane"}},
		Spec: corev1.PodSpec{HostNetwork: true, PriorityClassName: "system-cluster-critical"},
	}
	for i, path := range []string{rke2Kubeconfig, rke2TLS + "/client-scheduler.crt", rke2TLS + "/client-scheduler.key",
		rke2TLS + "/server-ca.crt"} {
		name := fmt.Sprintf("file%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &file}}})
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: path})
	}
	pod.Spec.Containers = []corev1.Container{container}
	sum := md5.Sum([]byte(image)) //nolint:gosec // RKE2's form of a UID
	pod.UID = types.UID(hex.EncodeToString(sum[:]))
	return pod
}
