//go:build linux

// Package calls tests how extenders influence placements, with the API server and the
// kube-scheduler of a release, configured as pmk-sched renders it, and pmk-extender as a process;
// and whether pods are scheduled when the extender does not answer.
package calls

import (
	"context"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

// subject is a release and how its scheduler is configured with extenders.
type subject struct {
	release string
	// policy: by a legacy Policy, else by a KubeSchedulerConfiguration.
	policy bool
}

func (s subject) String() string {
	if s.policy {
		return "policy"
	}
	return "configuration"
}

// scene is a subject with a control plane.
type scene struct {
	*controlplane.Plane
	subject
}

// TestExtenders runs all scenarios of a release on one control plane, several at a time.
func TestExtenders(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			plane := controlplane.Start(t, release)
			for name, test := range scenarios() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, scene{plane, subject{release: release}})
				})
			}
			if plane.Release.Minor > lastWithPolicy {
				return
			}
			// These have one scheduler of a fixed name: one at a time.
			t.Run("policy", func(t *testing.T) {
				t.Parallel()
				for name, test := range placements {
					t.Run(name, func(t *testing.T) { test(t, scene{plane, subject{release: release, policy: true}}) })
				}
			})
		})
	}
}

// lastWithPolicy is the last minor that reads a legacy Policy.
const lastWithPolicy = 22

// scenarios are the placements and the failures while pods arrive.
func scenarios() map[string]func(*testing.T, scene) {
	all := map[string]func(*testing.T, scene){"Prometheus gone": prometheusGone, "proof": proof}
	for name, test := range placements {
		all["placement: "+name] = test
	}
	made := maps.Clone(failures)
	if allFailures {
		maps.Copy(made, moreFailures)
	}
	for name, make := range made {
		all["failure: "+name] = func(t *testing.T, s scene) { failureWhilePodsArrive(t, s, make) }
	}
	return all
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// schedulerName returns the name of the scheduler that calls the extender of a group. With a
// Policy, 1.22 accepts only the default name.
func (s scene) schedulerName(group string) string {
	if s.policy {
		return "default-scheduler"
	}
	return group
}

// start starts the scheduler of a group with these extenders, and returns when it knows the nodes
// and the pods of the group. It ends with the test.
func (s scene) start(t *testing.T, group string, extenders ...profiles.Extender) {
	t.Helper()
	nodes, err := s.Kube.CoreV1().Nodes().List(t.Context(),
		metav1.ListOptions{LabelSelector: controlplane.GroupLabel + "=" + group})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := s.Kube.CoreV1().Pods(group).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scheduler := s.NewScheduler(t,
		controlplane.Scheduler{Name: s.schedulerName(group), Extenders: extenders, Policy: s.policy})
	scheduler.Start()
	scheduler.AwaitCache(func(cached map[string]bool) (bool, string) {
		for i := range nodes.Items {
			if name := nodes.Items[i].Name; !cached[name] {
				return false, "without node " + name
			}
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.Spec.NodeName != "" && !cached[string(pod.UID)] {
				return false, "without pod " + pod.Name
			}
		}
		return true, ""
	})
}

// extender has filter and prioritize, and pods wait for it.
func extender(url string) profiles.Extender {
	yes, no := true, false
	return profiles.Extender{
		Name: "test", URLPrefix: url, FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 10,
		// Longer than a busy machine takes to answer.
		HTTPTimeout: 10 * time.Second, Ignorable: &no, NodeCacheCapable: &yes,
	}
}
