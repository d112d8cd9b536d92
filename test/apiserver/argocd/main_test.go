//go:build linux && releases

// Package argocd runs Argo CD's application controller, repository server and ApplicationSet
// controller with Redis, the chart of a release index and the ApplicationSet of examples/gitops,
// for API servers of several releases. The controller managers, schedulers and kubelets of the
// clusters are played.
package argocd

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/gitops"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// namespace of Argo CD and of the objects of the example.
const namespace = "argocd"

// kindOf returns a kind of Argo CD.
func kindOf(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: name}
}

// start starts an API server with the objects of an installation of Argo CD, and the programs.
func start(t *testing.T) *gitops.Management {
	t.Helper()
	m := gitops.StartManagement(t, namespace)
	m.Define(t, "argocd", "github.com/argoproj/argo-cd/v3", "manifests/crds")
	settings := map[string]any{"app.kubernetes.io/part-of": "argocd"}
	m.CreateSecret(t, "argocd-secret", settings, map[string]any{"server.secretkey": "secret"})
	m.Create(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": "argocd-cm", "labels": settings}})
	m.Create(t, map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
		"metadata": map[string]any{"namespace": namespace, "name": "default"},
		"spec": map[string]any{
			"sourceRepos":              []any{"*"},
			"destinations":             []any{map[string]any{"namespace": "*", "server": "*"}},
			"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
		}})

	dir := t.TempDir()
	for variable, value := range map[string]string{
		"KUBECONFIG": m.Kubeconfig, "TMPDIR": dir, "ARGOCD_PLUGINSOCKFILEPATH": dir,
		"ARGOCD_TLS_DATA_PATH": dir, "ARGOCD_SSH_DATA_PATH": dir, "ARGOCD_GPG_ENABLED": "false",
		// The repository server runs helm.
		"PATH": filepath.Dir(run.Binary(t, "helm")) + string(os.PathListSeparator) + os.Getenv("PATH"),
	} {
		t.Setenv(variable, value)
	}
	redis, server := "127.0.0.1:"+port(t), port(t)
	controlplane.NewProcess(t, "redis-server", "--bind", "127.0.0.1", "--port", redis[len("127.0.0.1:"):], "--save", "",
		"--dir", dir).Start()
	argo(t, dir, "repo-server", "--address=127.0.0.1", "--port="+server, "--metrics-address=127.0.0.1",
		"--metrics-port="+port(t), "--disable-tls", "--redis="+redis)
	// A synchronization that waits for the test pod of the chart does not end otherwise.
	argo(t, dir, "application-controller", "--namespace="+namespace, "--repo-server=127.0.0.1:"+server,
		"--repo-server-plaintext", "--redis="+redis, "--metrics-port="+port(t), "--sync-timeout=120")
	argo(t, dir, "applicationset-controller", "--namespace="+namespace, "--argocd-repo-server=127.0.0.1:"+server,
		"--repo-server-plaintext", "--enable-progressive-syncs", "--metrics-addr=0", "--probe-addr=0",
		"--webhook-addr=127.0.0.1:"+port(t))
	return m
}

// argo starts a program of Argo CD: all are one binary, which reads its name.
func argo(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	program := filepath.Join(dir, "argocd-"+name)
	if err := os.Symlink(run.Binary(t, "argocd"), program); err != nil {
		t.Fatal(err)
	}
	controlplane.NewProcess(t, program, args...).Start()
}

func port(t *testing.T) string {
	t.Helper()
	free, err := apiserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(free)
}
