//go:build linux && cases

package commands

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// nodeFiles writes the files of a control-plane node of kubeadm, whose kubeconfig names the API
// server of cp-1, and returns their root.
func nodeFiles(t *testing.T) string {
	t.Helper()
	authority, err := os.ReadFile(server.Config().CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := apiserver.NewAuthority(t).Sign(x509.Certificate{Subject: pkix.Name{CommonName: "system:kube-scheduler"},
		NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: kubernetes, cluster: {server: "https://10.0.0.1:%s", certificate-authority-data: %s}}]
users: [{name: scheduler, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: scheduler, context: {cluster: kubernetes, user: scheduler}}]
current-context: scheduler
`, port(t), encode(authority), encode(pair.Cert), encode(pair.Key))
	root := t.TempDir()
	file := filepath.Join(root, "etc", "kubernetes", "scheduler.conf")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// startAPIServers makes the static pods of the nodes' API servers with these flags. It deletes the
// former pods.
func startAPIServers(ctx context.Context, t *testing.T, kube kubernetes.Interface, flags ...string) {
	t.Helper()
	no, now := false, int64(0)
	pods := kube.CoreV1().Pods("kube-system")
	for _, node := range controlPlane {
		name := "kube-apiserver-" + node
		_ = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}) // there is none at first
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name,
				Annotations: map[string]string{corev1.MirrorPodAnnotationKey: node, "kubernetes.io/config.source": "file"}},
			Spec: corev1.PodSpec{NodeName: node, HostNetwork: true, AutomountServiceAccountToken: &no,
				Containers: []corev1.Container{{
					Name: "kube-apiserver", Image: "registry.k8s.io/kube-apiserver:v1.24.3",
					Command: append([]string{"kube-apiserver", "--secure-port=" + port(t)}, flags...),
				}}},
		}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// testEndpoint shows which API server the replicas use that have a copy of one node's credentials.
func testEndpoint(t *testing.T, pmkSched func(args ...string) run.Result, image string) {
	kube := server.Client(t)
	ctx := run.Context(t)
	own := []string{"--node-root", nodeFiles(t), "--name", "my-scheduler", "--image", image}
	do := func(command ...string) run.Result { return pmkSched(append(command, own...)...) }

	startAPIServers(ctx, t, kube, "--bind-address=10.0.0.1")
	do("deploy", "--dry-run").Fails(t, 2, "names the API server of node cp-1 (https://10.0.0.1:"+port(t)+")",
		"--credentials hostpath", "--credentials serviceaccount")
	accepted := do("deploy", "--dry-run", "--credentials", "node").OK(t)
	accepted.Prints(t, "every replica uses the API server of node cp-1")
	do("deploy", "--dry-run", "--credentials", "hostpath").OK(t)

	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config"},
		Data: map[string]string{"ClusterConfiguration": "controlPlaneEndpoint: api.example.com\n"}}
	if _, err := kube.CoreV1().ConfigMaps("kube-system").Create(ctx, configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	do("render").OK(t).Prints(t, `server: "https://api.example.com:6443"`)

	startAPIServers(ctx, t, kube, "--advertise-address=127.0.0.1")
	rendered := do("render").OK(t)
	rendered.Prints(t, `server: "https://127.0.0.1:`+port(t)+`"`, `tls-server-name: "kubernetes.default.svc"`,
		"hostNetwork: true", "replicas: 3", "minAvailable: 1")
	// The dry run connects to the API server of each node and compares its certificate.
	dry := do("deploy", "--dry-run").OK(t)
	dry.Prints(t, "PodDisruptionBudget/kube-system/my-scheduler created")
	if strings.Contains(dry.Stderr, "certificate for kubernetes.default.svc") {
		t.Errorf("the API server's certificate was not accepted: %s", dry)
	}
	checked := do("check", "--autoscaler", "cluster-autoscaler").OK(t)
	checked.Prints(t, "cluster-autoscaler decides differently: scheduler-name", "it uses the first node that fits")
	for _, node := range controlPlane {
		checked.Prints(t, "the API server of node "+node+" has a certificate for kubernetes.default.svc")
	}
}
