package explain

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// zonal returns a volume of a zone and a region.
func zonal() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Labels: map[string]string{
		corev1.LabelTopologyZone: "a__b", corev1.LabelTopologyRegion: "r"}}}
}

// storageClass returns a class, which binds volumes when a pod has a node if wait is set.
func storageClass(name, provisioner string, wait bool) storagev1.StorageClass {
	mode := storagev1.VolumeBindingImmediate
	if wait {
		mode = storagev1.VolumeBindingWaitForFirstConsumer
	}
	return storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: &mode}
}

func claimScenes() []scene {
	const message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
	annotated := func(key, value string) func(*Input) {
		return func(in *Input) {
			class := storageClass("fast", "csi.example.com", false)
			class.Annotations = map[string]string{key: value}
			in.Classes = []storagev1.StorageClass{class}
			claim := newClaim("", "")
			claim.Spec.StorageClassName = nil
			in.Claims = []Claim{{Name: "data", Claim: claim}}
		}
	}
	of := func(class storagev1.StorageClass) func(*Input) {
		return func(in *Input) {
			in.Classes = []storagev1.StorageClass{storageClass("other", "x", false), class}
			in.Claims = []Claim{{Name: "data", Claim: newClaim(class.Name, "")}}
		}
	}
	return []scene{
		{"no class, and none is the default", message, annotated("a", "true")},
		{"no class, with a default", message, annotated(defaultClass, "true")},
		{"no class, with a default of old", message, annotated(betaDefaultClass, "true")},
		{"no class, with one that is not the default", message, annotated(defaultClass, "false")},
		{"an empty class", message, func(in *Input) { in.Claims = []Claim{{Name: "data", Claim: newClaim("", "")}} }},
		{"volumes by hand", message, of(storageClass("manual", noProvisioner, false))},
		{"volumes by hand on the node", message, of(storageClass("local", noProvisioner, true))},
		{"a class that waits", message, of(storageClass("late", "csi.example.com", true))},
		{"a class of the annotation", message, func(in *Input) {
			claim := newClaim("fast", "")
			claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "old"}
			in.Claims = []Claim{{Name: "data", Claim: claim}}
		}},
		{"a claim that is being deleted", message, func(in *Input) {
			claim := newClaim("fast", "")
			claim.DeletionTimestamp = &metav1.Time{Time: now}
			in.Claims = []Claim{{Name: "data", Claim: claim}}
		}},
		{"a volume that could not be read", message, func(in *Input) {
			in.Claims = []Claim{{Name: "data", Claim: newClaim("fast", "pv-1"), Unread: true}}
		}},
		{"two claims", "0/3 nodes are available: 2 node(s) didn't find available persistent volumes to bind, 1 node(s) had " +
			"untolerated taint {team: x}.", func(in *Input) {
			in.Claims = []Claim{{Name: "a", Event: "an event"}, {Name: "b", Claim: newClaim("fast", "")}}
		}},
		{"volumes of two claims", "0/3 nodes are available: 3 node(s) had no available volume zone.", func(in *Input) {
			in.Claims = []Claim{{Name: "none", Claim: newClaim("fast", "x"), Unread: true},
				{Name: "data", Claim: newClaim("fast", "pv-1"), Volume: zonal()}}
		}},
		{"a plugin that failed", `running "A" filter plugin: no`, func(in *Input) { in.Claims = []Claim{{Name: "data"}} }},
		{"a scheduler that failed", "no", func(in *Input) { in.Claims = []Claim{{Name: "data"}} }},
		{"a node that does not exist", `nodeinfo not found for node name "gone"`, func(in *Input) {
			in.Claims = []Claim{{Name: "data"}}
		}},
		{"not tried", "", func(in *Input) { in.Claims = []Claim{{Name: "data"}} }},
	}
}

func schedulerScenes() []scene {
	with := func(s Scheduler) func(*Input) {
		return func(in *Input) { in.Schedulers, in.Pod.Spec.SchedulerName = []Scheduler{s}, s.Name }
	}
	extender := func(urls ...string) func(*Input) {
		return with(Scheduler{Name: "s", Where: "Deployment/kube-system/s", Extenders: urls})
	}
	scenes := []scene{
		{"a Pod", "", with(Scheduler{Name: "s", Where: "Pod/kube-system/s-1"})},
		{"a Lease", "", with(Scheduler{Name: "s", Where: "Lease/kube-system/s"})},
		{"the default scheduler", "", with(Scheduler{Name: "default-scheduler", Where: "Lease/kube-system/kube-scheduler"})},
		{"a Deployment that is down", "", with(Scheduler{Name: "s", Where: "Deployment/kube-system/s", Problem: "no leader"})},
		{"a Lease that is not held, and a full node", "", func(in *Input) {
			with(Scheduler{Name: "s", Where: "Lease/kube-system/s", Problem: "no leader"})(in)
			in.Pod = newPod("web-0", "cpu", "8")
		}},
		{"a full node", "", func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			in.Pod.CreationTimestamp = metav1.NewTime(now.Add(time.Minute)) // the clocks differ
			in.Nodes[0].Spec.Unschedulable = true
			in.Nodes[1].Spec.Unschedulable = true
		}},
		{"most nodes are cordoned", "", func(in *Input) {
			in.Nodes = []corev1.Node{in.Nodes[2], in.Nodes[0], in.Nodes[1]}
			in.Nodes[1].Spec.Unschedulable = true
			in.Nodes[2].Spec.Unschedulable = true
		}},
		{"no schedulers", "", func(in *Input) { in.Schedulers = nil }},
		{"one other scheduler", "", func(in *Input) { in.Schedulers = []Scheduler{{Name: "z"}} }},
		{"one other scheduler, twice", "", func(in *Input) {
			in.Schedulers = []Scheduler{{Name: "z"}, {Name: "a"}, {Name: "z"}}
		}},
		{"four processes", "", func(in *Input) {
			in.Schedulers = nil
			for i := range 4 {
				in.Processes = append(in.Processes, Process{Namespace: "x", Pod: fmt.Sprint("p", i), Program: "b"})
			}
		}},
		{"a message of an unknown scheduler", "0/3 nodes are available: 3 not today.", func(in *Input) { in.Schedulers = nil }},
		{"a failure of an unknown scheduler", "no", func(in *Input) { in.Schedulers = nil }},
		{"an extender of an unknown scheduler", `Post "https://e/filter": no`, func(in *Input) { in.Schedulers = nil }},
		{"an event of an unknown scheduler", "", func(in *Input) {
			in.Schedulers = nil
			in.Events = []corev1.Event{{Reason: "A"}, {Reason: "B", ReportingController: "s"}}
		}},
		{"an old event of an unknown scheduler", "", func(in *Input) {
			in.Schedulers = nil
			in.Events = []corev1.Event{{Reason: "A", Source: corev1.EventSource{Component: "s"}}}
		}},
		{"an event of another scheduler", "", func(in *Input) {
			in.Schedulers = nil
			in.Events = []corev1.Event{{Reason: "A", ReportingController: "t", Source: corev1.EventSource{Component: "t"}}}
		}},
		{"the last event", "", func(in *Input) {
			in.Events = []corev1.Event{{Reason: "A"}, {Reason: "FailedScheduling", Message: "one"},
				{Reason: "FailedScheduling", Message: "two"}}
		}},
		{"a plugin that is named", "0/3 nodes are available: 3 not today, says B.", with(Scheduler{
			Name: "s", Plugins: []string{"A", "B"}, Extenders: []string{"u"}})},
		{"plugins and extenders", "0/3 nodes are available: 3 no.",
			with(Scheduler{Name: "s", Plugins: []string{"A", "B"}, Extenders: []string{"u", "v"}})},
		{"neither", "0/3 nodes are available: 3 no.", with(Scheduler{Name: "s"})},
		{"one of two extenders", `Post "https://b/filter": no`, extender("https://a", "https://b")},
		{"another extender", `Post "https://c/filter": no`, extender("https://a", "https://b")},
		{"an extender that may have failed", "no", extender("https://a")},
		{"no extender that may have failed", "no", extender()},
		{"two gates", "", func(in *Input) {
			in.Pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "b"}}
		}},
	}
	for _, names := range []int{3, 4} {
		scenes = append(scenes, scene{fmt.Sprint(names, " nodes that are not ready"), fmt.Sprintf(
			"0/%d nodes are available: %[1]d node(s) had untolerated taint(s).", names), func(in *Input) {
			in.Nodes = nil
			for i := range names {
				in.Nodes = append(in.Nodes, newNode(fmt.Sprint("n", i), "4",
					corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}))
			}
		}})
	}
	return scenes
}

func missingScenes() []scene {
	refused := func(kind, name, message string) corev1.Event {
		return corev1.Event{Message: message, InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}}
	}
	gone := func(events, ended []corev1.Event) func(*Input) {
		return func(in *Input) { in.Pod, in.Events, in.Ended = nil, events, ended }
	}
	of := func(pod string, e corev1.Event) corev1.Event {
		e.InvolvedObject.Name = pod
		return e
	}
	scenes := []scene{
		{"nothing is known", "", gone(nil, nil)},
		{"refused for several reasons", "", gone([]corev1.Event{
			refused("ReplicaSet", "a", "exceeded quota: x"), refused("ReplicaSet", "a", "exceeded quota: y"),
			refused("ReplicaSet", "a", "failed quota: z"), refused("ReplicaSet", "a", "denied"),
			refused("Job", "b", "denied"), refused("Job", "b", "denied again"),
			refused("Job", "b", "failed quota: must specify cpu"),
		}, nil)},
		{"ended for several reasons", "", gone(nil, []corev1.Event{
			of("web-0", ended("Killing", "kubelet", "Stopping container main")),
			of("web-1", ended("Killing", "kubelet", "Stopping container main")),
			of("web-1", ended("Killing", "kubelet", "Stopping container other")),
			of("web-0", ended("Preempted", "s", "Preempted by a/b on node n1")),
			of("web-0", ended("Evicted", "kubelet", "low on memory")),
			of("web-2", ended("Preempted", "s", "for a group")),
		})},
		{"a taint", "", gone(nil, []corev1.Event{
			ended("TaintManagerEviction", "taint-eviction-controller", "Marking for deletion Pod shop/web-0")})},
		{"ended and refused", "", gone([]corev1.Event{refused("ReplicaSet", "a", "denied")},
			[]corev1.Event{ended("Preempted", "s", "Preempted by a/b on node n1")})},
	}
	var events []corev1.Event
	for i := range maxEvictions + 1 {
		events = append(events, of(fmt.Sprint("db-", i), ended("ScaleDown", "autoscaler", "bye")))
	}
	events[0].Reason, events[0].Message = "Preempted", "Preempted by pod 7 on node n1"
	return append(scenes, scene{"one more than is listed", "", gone(nil, events)})
}

func TestReasonsAreThoseOfTheMessage(t *testing.T) {
	for message, want := range map[string][]string{
		"":                                 nil,
		"no nodes":                         nil,
		"0/3 nodes are available: ":        {},
		"0/3 nodes are available: .":       {},
		"0/3 nodes are available: no plan": {"no plan"},
		"0/3 nodes are available: 0 a, 9 b, c, 10 d, e.":                                              {"a", "b, c", "d, e"},
		"0/3 nodes are available: 9 a, 1 b.":                                                          {"a", "b"},
		"0/3 nodes are available: a b, 1 c.":                                                          {"a b, 1 c"},
		"0/3 nodes are available: x.":                                                                 {"x"},
		"0/3 nodes are available: 9 a. b":                                                             {"a"},
		"0/3 nodes are available: 9 a. b. c, preemption: x":                                           {"a. b"},
		"0/3 nodes are available: 9 a (v1. 2 or later).":                                              {"a (v1. 2 or later)"},
		"0/3 nodes are available: preemption: 0/3 nodes":                                              {},
		"0/3 nodes are available: . x":                                                                {},
		"0/3 nodes are available: :a, 1 b.":                                                           {":a, 1 b"},
		"0/3 nodes are available: /a, 1 b.":                                                           {"/a, 1 b"},
		"0/3 nodes are available: 3 Insufficient cpu, 1 x. preemption: 0/3 nodes are available: 3 y.": {"Insufficient cpu", "x"},
	} {
		got, ok := Reasons(message)
		if ok != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v, want %q", message, got, ok, want)
		}
	}
}
