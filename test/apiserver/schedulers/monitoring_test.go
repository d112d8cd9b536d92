//go:build linux

package schedulers

import (
	"context"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/deploy/render"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// watched is the scheduler whose metrics are read.
const watched = "watched"

// The metrics that the alerting rules and the dashboard use exist in the scheduler of each release
// after it has bound pods and while one is pending, and in its API server.
func TestMetricsOfRulesAndDashboardExist(t *testing.T) {
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			metricsExist(t, release)
		})
	}
}

func metricsExist(t *testing.T, release string) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	plane := planeOf(t, release)
	address := controlplane.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	plane.NewScheduler(t, controlplane.Scheduler{Name: watched, LeaderElect: true, Args: []string{
		"--secure-port=" + port, "--bind-address=127.0.0.1", "--authentication-kubeconfig=" +
			plane.Kubeconfig, "--authorization-kubeconfig=" + plane.Kubeconfig,
	}}).Start()
	plane.Namespace(ctx, t, watched)
	plane.Nodes(ctx, t, watched, "node-1")
	plane.Place(ctx, t, watched, controlplane.Filling(controlplane.Pod(watched, watched, "bound")))
	plane.Create(ctx, t, watched, controlplane.Filling(controlplane.Pod(watched, watched, "pending")))

	client := schedulerClient(t, plane.Kubeconfig)
	wanted, number := names(t, plane), 0
	run.Eventually(t, "the metrics of the scheduler exist", func(ctx context.Context) (bool, string) {
		text, err := client(ctx, "https://"+address+"/metrics")
		if err != nil {
			return false, err.Error()
		}
		missing := lacking(text, wanted.ofScheduler)
		for _, series := range []string{`leader_election_master_status{name="kube-scheduler"} 1`,
			`scheduler_schedule_attempts_total{profile="` + watched + `",result="scheduled"}`} {
			if !strings.Contains(text, series) {
				missing = append(missing, series)
			}
		}
		if len(missing) == 0 &&
			!regexp.MustCompile(`(?m)^scheduler_pending_pods\{queue="(active|backoff|unschedulable)"\} 1$`).MatchString(text) {
			missing = append(missing, "a pending pod")
		}
		if len(missing) > 0 {
			// kube-scheduler measures the plugins in one cycle of ten.
			number++
			plane.Create(ctx, t, watched, controlplane.Pod(watched, watched, fmt.Sprintf("more-%d", number)))
		}
		return len(missing) == 0, "missing: " + strings.Join(missing, ", ")
	})
	text, err := plane.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if missing := lacking(string(text), wanted.ofAPIServer); len(missing) > 0 {
		t.Errorf("the API server lacks %s", strings.Join(missing, ", "))
	}
}

// metrics are names of metrics in queries, sorted.
type metrics struct{ ofScheduler, ofAPIServer []string }

// names returns the metrics in the queries of the rules and the dashboard for the release of the
// plane.
func names(t *testing.T, plane *controlplane.Plane) metrics {
	t.Helper()
	objects, err := render.Monitoring(render.Monitored{Name: watched, Namespace: "kube-system",
		Release: plane.Release, PortName: "https", Certificate: true})
	if err != nil {
		t.Fatal(err)
	}
	scheduler, apiServer := map[string]bool{}, map[string]bool{"kubernetes_build_info": true}
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`([a-z][a-z0-9_]+)\{job`).FindAllStringSubmatch(string(text), -1) {
			switch name := found[1]; {
			case strings.HasPrefix(name, "pmk_sched_"): // of a plugin, which has its own test
			case name == "apiserver_admission_webhook_fail_open_count": // once a webhook has failed: see TestArbiter
			case strings.HasPrefix(name, "apiserver_"):
				apiServer[name] = true
			default:
				scheduler[name] = true
			}
		}
	}
	m := metrics{slices.Sorted(maps.Keys(scheduler)), slices.Sorted(maps.Keys(apiServer))}
	if len(m.ofScheduler) < 10 || len(m.ofAPIServer) < 2 {
		t.Fatalf("found only %v", m)
	}
	return m
}

// lacking returns the names that no line of metrics begins with.
func lacking(text string, names []string) (missing []string) {
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(text) {
			missing = append(missing, name)
		}
	}
	return missing
}

// schedulerClient returns a function that reads an address of a scheduler, which signs its
// certificate itself, with the token of a kubeconfig.
func schedulerClient(t *testing.T, kubeconfig string) func(ctx context.Context, url string) (string, error) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, url string) (string, error) {
		return controlplane.Get(ctx, url, config.BearerToken)
	}
}
