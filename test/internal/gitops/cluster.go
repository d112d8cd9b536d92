//go:build linux

package gitops

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Cluster is a real API server, whose controllers, schedulers and kubelets are played: see
// [apiserver.Server.Play].
type Cluster struct {
	*apiserver.Server

	// t is the test that started the cluster, which may be upgraded in a subtest.
	t testing.TB
	// program is a link to the kube-apiserver.
	program string
	stop    func()
}

// StartCluster starts a cluster of a release. It ends with the test.
func StartCluster(t testing.TB, release string) *Cluster {
	t.Helper()
	binaries := binariesOf(t, release)
	c := &Cluster{t: t, program: filepath.Join(t.TempDir(), "kube-apiserver")}
	c.link(t, binaries.KubeAPIServer)
	binaries.KubeAPIServer = c.program
	c.Server = apiserver.StartFor(t, binaries)
	c.play()
	return c
}

func binariesOf(t testing.TB, release string) apiserver.Binaries {
	t.Helper()
	parsed, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	binaries, err := apiserver.BinariesOf(t.Context(), parsed)
	if err != nil {
		t.Fatal(err)
	}
	return binaries
}

func (c *Cluster) link(t testing.TB, program string) {
	t.Helper()
	if err := os.Remove(c.program); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink(program, c.program); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) play() {
	c.t.Helper()
	c.stop = c.Play(c.t, metav1.NamespaceSystem, behavior)
}

// Upgrade replaces the API server by an API server of another release, at the same address and with
// the same objects.
func (c *Cluster) Upgrade(t testing.TB, release string) {
	t.Helper()
	binaries := binariesOf(t, release)
	c.stop()
	if err := c.StopAPI(); err != nil {
		t.Fatal(err)
	}
	c.link(t, binaries.KubeAPIServer)
	if err := c.StartAPI(run.Context(t)); err != nil {
		t.Fatal(err)
	}
	c.play()
}

// Kubeconfig returns a kubeconfig with all permissions that refers to no file.
func (c *Cluster) Kubeconfig(t testing.TB) []byte {
	t.Helper()
	access := c.Config()
	ca, err := os.ReadFile(access.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: access.Host, CertificateAuthorityData: ca}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: access.BearerToken}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Image returns the image of the scheduler and whether its Deployment is available, or "" if there
// is no Deployment.
func (c *Cluster) Image(ctx context.Context, t testing.TB) (image string, available bool) {
	t.Helper()
	d, err := c.Client(t).AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, Scheduler, metav1.GetOptions{})
	if err != nil {
		return "", false
	}
	ready := d.Status.ObservedGeneration == d.Generation && d.Status.UnavailableReplicas == 0
	return d.Spec.Template.Spec.Containers[0].Image, ready
}
