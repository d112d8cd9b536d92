//go:build linux && cases

package shadow

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Everything else with one API server of each release.
func TestShadowsReportWhatGoesWrong(t *testing.T) {
	t.Parallel()
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) { reportsWhatGoesWrong(t, release) })
	}
}

func reportsWhatGoesWrong(t *testing.T, release string) {
	t.Helper()
	p := controlplane.Start(t, release)
	pmkSched := func(args ...string) run.Result {
		return run.PMKSched(t, append([]string{"--kubeconfig", p.Kubeconfig, "shadow", "--branch", release}, args...)...)
	}
	t.Run("a permission is missing", func(t *testing.T) {
		pmkSched("--as", "jane").Fails(t, 1, "no permission: user jane cannot list",
			"`pmk-sched shadow --rbac` prints the permissions")
	})
	t.Run("an extender binds pods", func(t *testing.T) {
		binder := run.WriteFile(t, "binder.yaml",
			"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: "+
				"\"http://127.0.0.1:1\", bindVerb: bind}]\n")
		pmkSched("--config", binder).Fails(t, 2, "binds pods, which a shadow must not do")
	})
	t.Run("without pods", func(t *testing.T) {
		pmkSched("--for", "1s").OK(t).Prints(t, "default-scheduler "+release+" compared with default-scheduler for 1s",
			"pods: 0 same, 0 different, 0 tied")
	})
	p.Namespace(t.Context(), t, space)
	permit(t, p)
	node(t, p, "small", 4000, 8000)
	node(t, p, "large", 8000, 16000)
	p.NewScheduler(t, controlplane.Scheduler{Name: corev1.DefaultSchedulerName}).Start()
	t.Run("the API server cannot be reached for a while", func(t *testing.T) { survivesALostConnection(t, p) })
	t.Run("nodes are equal", func(t *testing.T) { tiesOnlyWhereNodesAreEqual(t, p) })
	t.Run("pods are evicted", func(t *testing.T) { agreesOnAnEviction(t, p) })
}

// survivesALostConnection makes the default scheduler bind pods while the shadow does not reach the
// API server. The shadow decides about these pods later.
func survivesALostConnection(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	r := newRelay(t, p.Kubeconfig)
	o := observe(t, p.Release, r.kubeconfig)
	pod(t, p, "web-0", "100m", "100Mi")
	o.decided(t, 1)
	r.cut()
	for i := range 5 {
		pod(t, p, fmt.Sprint("web-", i+1), "100m", "100Mi")
	}
	run.Eventually(t, "the shadow misses the API server", func(context.Context) (bool, string) {
		text := o.stderr.String()
		return strings.Contains(text, "the API server does not respond"), text
	})
	r.open(t)
	o.decided(t, 6)
	pod(t, p, "later", "100m", "100Mi")
	o.decided(t, 7)
	report := o.end(t)
	decidedAll(t, "after a lost connection", report, 7)
	if len(report.Differences) > 0 || len(report.Notes) > 0 {
		t.Errorf("after a lost connection: different %+v, notes %q", report.Differences, report.Notes)
	}
}

// tiesOnlyWhereNodesAreEqual places equal pods on two equal nodes. Every other pod finds both with
// the same pods: it is the same or a tie. The next one finds one of them with a pod less: it has no
// choice.
func tiesOnlyWhereNodesAreEqual(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	twins := []string{"twin-a", "twin-b"}
	for _, name := range twins {
		node(t, p, name, 4000, 4000)
	}
	const pods = 32
	o := observe(t, p.Release, p.Kubeconfig)
	for i := range pods {
		name := fmt.Sprintf("choice-%02d", i)
		if i%2 == 1 {
			name = fmt.Sprintf("follow-%02d", i)
		}
		made := request(name, "200m", "200Mi")
		made.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: twins},
				}}},
			}}}
		place(t, p, made)
	}
	o.decided(t, pods)
	report := o.end(t)
	decidedAll(t, "equal nodes", report, pods)
	if len(report.Differences) > 0 {
		t.Errorf("different: %+v", report.Differences)
	}
	if len(report.Noise) == 0 {
		t.Error("no ties")
	}
	for _, d := range report.Noise {
		if !strings.HasPrefix(d.Name, "choice-") {
			t.Errorf("pod %s has no choice and is a tie: %+v", d.Name, d)
		}
	}
}

// agreesOnAnEviction checks that the shadow reports no difference when the default scheduler evicts
// a pod that the shadow would evict too.
func agreesOnAnEviction(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	_, err := p.Kube.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := observe(t, p.Release, p.Kubeconfig)
	pod(t, p, "victim", "6", "100Mi")
	o.decided(t, 1)
	urgent := request("urgent", "7", "100Mi")
	urgent.Spec.PriorityClassName = "urgent"
	p.Create(t.Context(), t, space, urgent)
	o.decided(t, 2)
	now := int64(0) // without a kubelet nothing else deletes the pod
	if err := p.Kube.CoreV1().Pods(space).Delete(t.Context(), "victim",
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	o.decided(t, 3)
	report := o.end(t)
	decidedAll(t, "with an eviction", report, 2)
	if report.Same != 2 {
		t.Errorf("%d pods the same, want 2: %+v", report.Same, report)
	}
	if len(report.Evictions) > 0 {
		t.Errorf("only the shadow evicts %+v", report.Evictions)
	}
}
