//go:build linux && cases

package route

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// perSecond is the number of new pods a second, for loadTime. After lossAfter the scheduler is
	// lost.
	perSecond = 20
	loadTime  = 60 * time.Second
	lossAfter = 10 * time.Second
	// mostWait is the longest time that a routed pod may wait for a node or for its deletion.
	mostWait = 60 * time.Second
)

// life is what was seen of a pod. ended is when it got a node or was deleted.
type life struct {
	created, ended time.Time
	bound          bool
	scheduler      string
}

// lives watches the pods of a namespace.
type lives struct {
	mu  sync.Mutex
	all map[types.UID]*life
}

func watchLives(t *testing.T, n *labs.Node, namespace string) *lives {
	t.Helper()
	l := &lives{all: map[types.UID]*life{}}
	list, err := n.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := n.Kube.CoreV1().Pods(namespace).Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				l.see(pod, event.Type == watch.Deleted)
			}
		}
	}()
	return l
}

func (l *lives) see(pod *corev1.Pod, deleted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.all[pod.UID]
	if p == nil {
		p = &life{created: time.Now()}
		l.all[pod.UID] = p
	}
	p.scheduler = pod.Spec.SchedulerName
	if p.ended.IsZero() && (deleted || pod.Spec.NodeName != "") {
		p.ended, p.bound = time.Now(), pod.Spec.NodeName != ""
	}
}

// A Deployment grows by 20 pods a second while all replicas of the scheduler are lost.
func TestPodsWaitLessThanAMinuteUnderLoad(t *testing.T) {
	n, name := labs.Exclusive(t, lab.LayoutPMK), labs.SchedulerName(t)
	installController(t, n, "route")
	n.Kubectl(t, "create", "namespace", name)
	t.Cleanup(func() { n.Kubectl(t, "delete", "namespace", "--wait=false", name) })
	const pods = perSecond * int(loadTime/time.Second)
	roomFor(t, n, pods)
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(`apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: %s}
spec:
  image: {reference: %q}
  replicas: 1
  route: {namespaces: [%[1]s], onFailure: Release}
`, name, n.Image(t)))
	n.UninstallLater(t, name)
	n.PMKSched(t, append([]string{"deploy", "-f", file, "--port", n.Port(t)}, labs.Stable("1s")...)...).OK(t)
	n.Apply(t, fmt.Sprintf(workload, name, 1))
	awaitBound(t, n, name, name, 1)
	seen := watchLives(t, n, name)

	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	lost := false
	for i := 1; i <= int(loadTime/time.Second); i++ {
		n.Kubectl(t, "scale", "-n", name, "deployment/web", fmt.Sprint("--replicas=", 1+i*perSecond))
		if !lost && time.Since(began) > lossAfter {
			lost = true
			n.Scale(t, name, 0)
			n.Apply(t, bare(name))
			// A route does not end while a pod waits that got the scheduler by it.
			t.Cleanup(func() { n.Kubectl(t, "delete", "pod", "bare", "-n", name) })
		}
		<-tick.C
	}
	run.Eventually(t, "every pod of the Deployment has a node", func(ctx context.Context) (bool, string) {
		bound, waiting, err := schedulers(ctx, n, name)
		return err == nil && waiting == 1 && bound[name]+bound[corev1.DefaultSchedulerName] == pods+1,
			fmt.Sprint(bound, waiting, err)
	})
	seen.check(t, name)
	pod, err := n.Kube.CoreV1().Pods(name).Get(t.Context(), "bare", metav1.GetOptions{})
	if err != nil || pod.Spec.SchedulerName != name {
		t.Errorf("the bare pod: %v, %s", err, pod.Spec.SchedulerName)
	}
	n.Kubectl(t, "wait", "-n", name, "--for=jsonpath={.reason}=PodNotReleased", "--timeout=1m", "events",
		"--field-selector=involvedObject.name=bare,reason=PodNotReleased")
}

// check compares the longest wait with mostWait, without the bare pod.
func (l *lives) check(t *testing.T, scheduler string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	longest, released, waits := time.Duration(0), 0, 0
	for _, p := range l.all {
		if p.ended.IsZero() {
			waits++
			continue
		}
		if p.scheduler == scheduler && !p.bound {
			released++
		}
		longest = max(longest, p.ended.Sub(p.created))
	}
	t.Logf("%d pods were created, %d of them released; the longest wait was %s", len(l.all), released,
		longest.Round(100*time.Millisecond))
	if longest > mostWait || waits != 1 || released == 0 {
		t.Errorf("the longest wait was %s, %d pods wait, %d were released", longest, waits, released)
	}
}

func bare(namespace string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: %s}
spec:
  tolerations: [{key: simulated, operator: Exists}]
  nodeSelector: {type: kwok}
  containers: [{name: main, image: "localhost/none:v1"}]
`, namespace)
}

// roomFor lets the simulated workers take so many pods.
func roomFor(t *testing.T, n *labs.Node, pods int) {
	t.Helper()
	list, err := n.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type=kwok"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		_, err := n.Kube.CoreV1().Nodes().Patch(t.Context(), list.Items[i].Name, types.MergePatchType,
			fmt.Appendf(nil, `{"status": {"allocatable": {"pods": "%d"}, "capacity": {"pods": "%[1]d"}}}`, pods),
			metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
}
