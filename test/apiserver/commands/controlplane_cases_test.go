//go:build linux && cases

package commands

import (
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestSeveralControlPlaneNodes(t *testing.T) {
	pmkSched := kubeadmCluster(t)
	const image = "registry.example.com/my-scheduler:v1"
	own := []string{"--name", "my-scheduler", "--image", image, "--credentials", "serviceaccount"}

	t.Run("a replica for each", func(t *testing.T) {
		rendered := pmkSched(append([]string{"render"}, own...)...).OK(t)
		rendered.Prints(t, "replicas: 3", controlPlaneLabel, "podAntiAffinity")
	})
	t.Run("a dry run applies nothing", func(t *testing.T) {
		pmkSched(append([]string{"deploy", "--dry-run"}, own...)...).OK(t).Prints(t,
			"Deployment/kube-system/my-scheduler created")
		kube := server.Client(t)
		all := metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=pmk-sched"}
		deployments, err := kube.AppsV1().Deployments("").List(run.Context(t), all)
		if err != nil || len(deployments.Items) > 0 {
			t.Errorf("the dry run made %d Deployments: %v", len(deployments.Items), err)
		}
		maps, err := kube.CoreV1().ConfigMaps("").List(run.Context(t), all)
		if err != nil || len(maps.Items) > 0 {
			t.Errorf("the dry run made %d ConfigMaps: %v", len(maps.Items), err)
		}
	})
	t.Run("upstream's image", func(t *testing.T) {
		reference := pushUpstream(t)
		dry := pmkSched("deploy", "--dry-run", "--name", "my-scheduler", "--image", reference, "--credentials",
			"serviceaccount").OK(t)
		if strings.Contains(dry.Stderr, "built-in rules") {
			t.Errorf("the scheduler of the image did not check the configuration: %s", dry)
		}
	})
	t.Run("no replica depends on one node", func(t *testing.T) { testEndpoint(t, pmkSched, image) })
	t.Run("replace names each node", func(t *testing.T) {
		type line struct {
			Node, Image, Command string
			Done                 bool
		}
		plan := run.Decode[[]line](t, pmkSched("replace", "--image", image, "--all-nodes", "-o", "json").OK(t).Stdout)
		var nodes []string
		for _, l := range plan {
			nodes = append(nodes, l.Node)
			if l.Done || l.Image != upstreamImage || !strings.HasSuffix(l.Command, "--image "+image+" --node "+l.Node) {
				t.Errorf("node %s: %+v", l.Node, l)
			}
		}
		slices.Sort(nodes)
		if !slices.Equal(nodes, controlPlane) {
			t.Errorf("the plan has the nodes %v, want %v", nodes, controlPlane)
		}
		for _, l := range run.Decode[[]line](t, pmkSched("restore", "--all-nodes", "-o", "json").OK(t).Stdout) {
			if !l.Done || !strings.HasSuffix(l.Command, " restore --yes") {
				t.Errorf("restore on node %s: %+v", l.Node, l)
			}
		}
	})
	t.Run("status of default schedulers", func(t *testing.T) { testStatusOfDefaultSchedulers(t, pmkSched) })
	t.Run("status of the node's files", func(t *testing.T) { testStatusOfNodeFiles(t, pmkSched) })
	t.Run("upgrade check", func(t *testing.T) { testUpgradeCheck(t, pmkSched) })
}

// pushUpstream pushes an image shaped like upstream's, with a real kube-scheduler, to a registry
// and returns its name. The entrypoint is another program.
func pushUpstream(t *testing.T) string {
	t.Helper()
	release, err := versions.Parse(apiserver.Release)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := controlplane.Build(run.Context(t), build.Options{Release: release})
	if err != nil {
		t.Fatal(err)
	}
	const busybox = "/bin/busybox"
	platform := "linux/" + runtime.GOARCH
	built, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Busybox: busybox}, Platforms: []string{platform}, Entrypoint: []string{"/go-runner"},
		Files: map[string][]image.File{platform: {{Path: "/go-runner", Source: busybox},
			{Path: image.SchedulerPath, Source: scheduler}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/kube-scheduler:" + apiserver.Release
	if _, err := image.Push(t.Context(), built, reference, nil); err != nil {
		t.Fatal(err)
	}
	return reference
}
