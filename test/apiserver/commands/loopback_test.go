//go:build linux

package commands

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// A scheduler reaches the API server over loopback by a name that is not in its certificate, as on
// a control-plane node of kubeadm. It leads, which shows the client of leader election, and
// authenticates a request for metrics, which shows the one of authentication.
func TestSchedulerVerifiesTheAPIServerByTheNameInItsKubeconfig(t *testing.T) {
	const name, lease = "kubernetes.default.svc", "by-name"
	release, err := versions.Parse(apiserver.Release)
	if err != nil {
		t.Fatal(err)
	}
	program, err := controlplane.Build(run.Context(t), build.Options{Release: release})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "https://localhost:%s", tls-server-name: %q, certificate-authority: %q}}]
users: [{name: scheduler, user: {token: %q}}]
contexts: [{name: scheduler, context: {cluster: local, user: scheduler}}]
current-context: scheduler
`, port(t), name, server.Config().CAFile, server.Config().BearerToken)
	rendered, err := profiles.Render(profiles.Request{
		Release: release, SchedulerName: lease, LeaseNamespace: "kube-system", Kubeconfig: kubeconfig, LeaderElect: true,
		Preset: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{kubeconfig: []byte(text), config: rendered.YAML} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := controlplane.FreeAddress(t)
	_, secure, _ := strings.Cut(address, ":")
	controlplane.NewProcess(t, program, append([]string{
		"--config=" + config, "--secure-port=" + secure, "--bind-address=127.0.0.1", "--cert-dir=" + dir,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}, rendered.Args...)...).Start()

	kube := server.Client(t)
	run.Eventually(t, "the scheduler leads", func(ctx context.Context) (bool, string) {
		found, err := kube.CoordinationV1().Leases("kube-system").Get(ctx, lease, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return found.Spec.HolderIdentity != nil && *found.Spec.HolderIdentity != "", "no holder"
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // self-signed
	run.Eventually(t, "the scheduler authenticates a request", func(ctx context.Context) (bool, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+server.Config().BearerToken)
		response, err := client.Do(request)
		if err != nil {
			return false, err.Error()
		}
		return response.StatusCode == http.StatusOK, response.Status + " " + fmt.Sprint(response.Body.Close())
	})
}
