//go:build linux

// Package throughput measures how many pods a second a deployed scheduler binds, deployed with the
// manifests of Platform9's article and with pmk-sched by default.
package throughput

import (
	"context"
	_ "embed"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	workers = 500
	pods    = 1000
	// rounds is how often each side is measured. The sides take turns, so that other load on the
	// machine affects both; the median counts.
	rounds = 5
)

// article are the manifests of the article, with two placeholders.
//
//go:embed testdata/article.yaml
var article string

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

func BenchmarkThroughput(b *testing.B) {
	n := labs.Start(b, labs.Options{Release: labs.Release, Layout: "pmk", Workers: workers})
	image := n.Image(b)
	kubeconfig := n.Shell(b,
		"kubectl config view --raw --flatten --kubeconfig /etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml")
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(kubeconfig), "\n", "\n    ")
	n.Apply(b, strings.NewReplacer("KUBECONFIG\n", indented+"\n", "image: IMAGE", "image: "+image).Replace(article))
	n.Kubectl(b, "rollout", "status", "deployment/my-scheduler", "-n", "kube-system", "--timeout=5m")
	n.PMKSched(b, "deploy", "--name", "pmk-sched", "--image", image).OK(b)
	sides := []string{"my-scheduler", "pmk-sched"}
	for _, side := range sides {
		n.Scale(b, side, 0)
	}
	rates := map[string]samples.Set{}
	for b.Loop() {
		for round := range rounds {
			for _, side := range samples.Turn(sides, round) {
				rates[side] = append(rates[side], measure(b, n, side))
			}
		}
	}
	for _, side := range sides {
		b.Logf("%s: %.0f pods/s", side, rates[side])
	}
	article, deployed := rates["my-scheduler"], rates["pmk-sched"]
	article.ReportMedian(b, "article", "pods/s")
	deployed.ReportMedian(b, "pmk-sched", "pods/s")
	ratio := deployed.Median() / article.Median()
	b.ReportMetric(ratio, "x-article")
	// The client of the article's scheduler is limited to 50 requests per second; on other cores the
	// deployed one is slower or faster.
	samples.Claim("docs/performance.md", "| kube-scheduler deployed with `pmk-sched deploy` | 198 |").
		AtLeast(b, "deployed/article", ratio, 2.5)
}

// measure makes all pods pending while the scheduler has no replica, so that creating them is not
// measured, then starts it and counts from the first pod that is bound to the last.
func measure(b *testing.B, n *labs.Node, scheduler string) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	ns := n.CreatePods(ctx, b, pods, scheduler)
	events := controlplane.WatchBound(ctx, b, n.Kube, ns)
	n.Scale(b, scheduler, 1)
	defer n.Scale(b, scheduler, 0)
	defer controlplane.DeletePods(ctx, b, n.Kube, ns)
	rate, bound := controlplane.BindingRate(events, pods)
	if bound < pods {
		b.Fatalf("%s bound only %d of %d pods", scheduler, bound, pods)
	}
	return rate
}
