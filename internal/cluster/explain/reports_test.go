package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

// reportText is a report without the message of the scheduler.
func reportText(t *testing.T, r *Report) string {
	t.Helper()
	short := *r
	short.Message = ""
	text, err := yaml.Marshal(short)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReportsOfCausesMatchTheGoldenFile(t *testing.T) {
	var all strings.Builder
	for _, tc := range causes() {
		before := ""
		for _, release := range slices.Sorted(maps.Keys(tc.messages)) {
			in := newInput()
			tc.set(&in)
			if message := tc.messages[release]; message != "" {
				reject(in.Pod, corev1.PodReasonUnschedulable, message)
			}
			text := reportText(t, Pod(in))
			if text == before {
				fmt.Fprintf(&all, "# %s, %s: the same\n\n", tc.name, release)
				continue
			}
			fmt.Fprintf(&all, "# %s, %s\n%s\n", tc.name, release, text)
			before = text
		}
	}
	golden.Equal(t, "testdata/causes.txt", all.String())
}

// scene is a pod with the message of its scheduler, if there is one.
type scene struct {
	name, message string
	set           func(*Input)
}

func (s scene) report() *Report {
	in := newInput()
	s.set(&in)
	if s.message != "" {
		reject(in.Pod, corev1.PodReasonUnschedulable, s.message)
	}
	return Pod(in)
}

func TestReportsOfScenesMatchTheGoldenFiles(t *testing.T) {
	for file, scenes := range map[string][]scene{
		"resources": resourceScenes(), "claims": claimScenes(), "nodes": nodeScenes(), "schedulers": schedulerScenes(),
		"placed": placedScenes(), "missing": missingScenes(),
	} {
		t.Run(file, func(t *testing.T) {
			var all strings.Builder
			for _, s := range scenes {
				fmt.Fprintf(&all, "# %s\n%s\n", s.name, reportText(t, s.report()))
			}
			golden.Equal(t, "testdata/scenes-"+file+".txt", all.String())
		})
	}
}

// full fills each of n nodes so that the pod lacks as many CPUs as the node's number.
func full(in *Input, cpu string, n int) {
	in.Pod, in.Nodes = newPod("web-0", "cpu", cpu), nil
	for i := 1; i <= n; i++ {
		name := fmt.Sprint("n", i)
		in.Nodes = append(in.Nodes, newNode(name, "10"))
		used := newPod("a", "cpu", "10")
		used.Spec.Containers[0].Resources.Requests["cpu"] = *resource.NewQuantity(int64(10+i), resource.DecimalSI)
		request := in.Pod.Spec.Containers[0].Resources.Requests["cpu"]
		quantity := used.Spec.Containers[0].Resources.Requests["cpu"]
		quantity.Sub(request)
		used.Spec.Containers[0].Resources.Requests["cpu"] = quantity
		occupy(in, name, used)
	}
}

func resourceScenes() []scene {
	const cpu = "0/3 nodes are available: 3 Insufficient cpu."
	return []scene{
		{"three shortages", cpu, func(in *Input) { full(in, "4", 3) }},
		{"four shortages", "0/4 nodes are available: 4 Insufficient cpu.", func(in *Input) { full(in, "4", 4) }},
		{"five shortages", "0/5 nodes are available: 5 Insufficient cpu.", func(in *Input) { full(in, "4", 5) }},
		{"as much as is missing", "0/1 nodes are available: 1 Insufficient cpu.", func(in *Input) { full(in, "1", 1) }},
		{"nodes of two sizes", cpu, func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "6")
			in.Nodes = []corev1.Node{newNode("n1", "4"), newNode("n2", "6"), newNode("n3", "6")}
			occupy(in, "n2", newPod("a", "cpu", "3"))
			occupy(in, "n3", newPod("a", "cpu", "3"))
		}},
		{"larger than each node, one of which has a taint", "0/3 nodes are available: 1 node(s) had untolerated taint " +
			"{team: x}, 2 Insufficient cpu.", func(in *Input) { in.Pod = newPod("web-0", "cpu", "500100m") }},
		{"larger than the only node, which has a taint", "0/1 nodes are available: 1 Insufficient cpu, 1 node(s) had " +
			"untolerated taint {team: x}.", func(in *Input) {
			in.Pod, in.Nodes = newPod("web-0", "cpu", "500100m"), in.Nodes[2:]
		}},
		{"a full node with a taint", "0/1 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint " +
			"{team: x}.", func(in *Input) {
			in.Nodes = in.Nodes[2:]
			occupy(in, "n3", newPod("a", "cpu", "4"))
		}},
		{"a full and a free node with a taint", "0/2 nodes are available: 2 node(s) had untolerated taint {team: x}.",
			func(in *Input) {
				in.Nodes[1].Spec.Taints = in.Nodes[2].Spec.Taints
				in.Nodes = in.Nodes[1:]
				occupy(in, "n3", newPod("a", "cpu", "4"))
			}},
		{"less than is missing", cpu, func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "1")
			tolerateAll(in)
			for _, n := range []string{"n1", "n2", "n3"} {
				occupy(in, n, newPod("a", "cpu", "5"))
			}
		}},
		{"exactly enough now", cpu, func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "3")
			tolerateAll(in)
			for _, n := range []string{"n1", "n2", "n3"} {
				occupy(in, n, newPod("a", "cpu", "1"))
			}
		}},
		{"nothing is requested of what nodes lack", "0/3 nodes are available: 3 Insufficient memory.", func(in *Input) {
			in.Pod = newPod("web-0", "memory", "9Gi")
			in.Pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.Quantity{}
			tolerateAll(in)
			for _, n := range []string{"n1", "n2", "n3"} {
				occupy(in, n, newPod("a", "cpu", "5"))
			}
		}},
		{"a resized pod", "0/1 nodes are available: 1 Insufficient cpu.", func(in *Input) {
			in.Nodes = in.Nodes[:1]
			in.Pod = newPod("web-0", "cpu", "2")
			resized := newPod("a", "cpu", "1")
			resized.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
				Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}}
			occupy(in, "n1", resized)
		}},
		{"unknown pods", cpu, func(in *Input) { in.Pod, in.Usage = newPod("web-0", "cpu", "8"), nil }},
		{"more nodes than the scheduler counts", "0/3 nodes are available: 2 Insufficient cpu.", func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			tolerateAll(in)
		}},
		{"pods of lower priority", cpu, func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			priority := int32(7)
			in.Pod.Spec.Priority = &priority
			occupy(in, "n1", newPod("a", "cpu", "1"))
		}},
		{"a pod of lower priority without a message", "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes " +
			"are available: 3 No preemption victims found for incoming pod.", func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			priority := int32(7)
			in.Pod.Spec.Priority = &priority
			occupy(in, "n1", newPod("a", "cpu", "1"))
		}},
		{"a pod with a nominated node", cpu, func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			in.Pod.Status.NominatedNodeName = "n1"
			occupy(in, "n1", newPod("a", "cpu", "1"))
		}},
		{"a nominated node with four pods that end", cpu, func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "4")
			in.Pod.Status.NominatedNodeName = "n1"
			for i := range 4 {
				victim := newPod(fmt.Sprint("victim-", i), "cpu", "1")
				victim.DeletionTimestamp = &metav1.Time{Time: now}
				occupy(in, "n1", victim)
			}
		}},
		{"ports that are not of the host", cpu, func(in *Input) {
			in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			other := newPod("a", "cpu", "1")
			other.Spec.Containers[0].Ports = in.Pod.Spec.Containers[0].Ports
			occupy(in, "n1", other)
		}},
		{"the first port of the host, used by two pods",
			"0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports.", func(in *Input) {
				tolerateAll(in)
				in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 1}, {HostPort: 2}}
				for i, n := range []string{"n1", "n2", "n3"} {
					other := newPod(fmt.Sprint("a", i/2), "cpu", "1")
					other.Spec.Containers[0].Ports = in.Pod.Spec.Containers[0].Ports
					occupy(in, n, other)
				}
			}},
	}
}

// withLabels gives the nodes one of the labels each.
func withLabels(in *Input, key string, values ...string) {
	for i, value := range values {
		in.Nodes[i].Labels[key] = value
	}
}

func nodeScenes() []scene {
	taint := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	scenes := []scene{
		{"all causes, in their order", `0/15 nodes are available: 5 node(s) didn't match Pod's node affinity/selector, ` +
			`4 node(s) had untolerated taint {team: x}, 3 node(s) were unschedulable, 2 Insufficient cpu, ` +
			`1 persistentvolumeclaim "data" not found.`, func(in *Input) {
			in.Pod, in.Nodes = newPod("web-0", "cpu", "3"), nil
			in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			for i := range 15 {
				node := newNode(fmt.Sprint("n", i), "4")
				switch {
				case i < 2:
					node = newNode(node.Name, "2")
				case i < 5:
					node.Spec.Unschedulable = true
				case i < 9:
					node.Spec.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
				}
				if i < 10 {
					node.Labels["disk"] = "ssd"
				}
				in.Nodes = append(in.Nodes, node)
			}
			in.Claims = []Claim{{Name: "data"}}
		}},
		{"nodes that are not ready, and taints", "0/3 nodes are available: 3 node(s) had untolerated taint(s).",
			func(in *Input) {
				in.Nodes[0].Spec.Taints = []corev1.Taint{taint(corev1.TaintNodeUnreachable)}
				in.Nodes[1].Spec.Taints = []corev1.Taint{taint("dedicated")}
			}},
		{"a taint that most nodes have no more", "0/5 nodes are available: 5 node(s) had untolerated taint {team: x}.",
			func(*Input) {}},
		{"nodes that are ready again", "0/3 nodes are available: 3 node(s) had untolerated taint " +
			"{node.kubernetes.io/not-ready: }.", func(*Input) {}},
		{"nodes that are not cordoned any more", "0/3 nodes are available: 3 node(s) were unschedulable.", func(*Input) {}},
		{"a taint of nodes that the selector excludes", "0/3 nodes are available: 1 node(s) had untolerated taint {a: }, " +
			"1 node(s) had untolerated taint {b: c}, 1 Insufficient cpu.", func(in *Input) {
			in.Pod = newPod("web-0", "cpu", "8")
			in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"}
			in.Nodes[1].Spec.Taints = []corev1.Taint{taint("a")}
		}},
		{"a taint of more nodes than the selector excludes", "0/3 nodes are available: 3 node(s) had untolerated taint {a: }.",
			func(in *Input) { in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} }},
		{"a taint of all nodes that the selector excludes, and others that do not match", "0/3 nodes are available: " +
			"1 node(s) had untolerated taint {b: }, 2 node(s) had untolerated taint {a: }, 2 node(s) didn't match Pod's node " +
			"affinity/selector.", func(in *Input) { in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} }},
		{"no node matches, and one is full", "0/3 nodes are available: 1 Too many pods, 2 node(s) didn't match Pod's node " +
			"affinity/selector.", func(in *Input) { in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"} }},
		{"a prefix of a taint", "0/3 nodes are available: 2 node(s) had untolerated taint {team: x}.", func(in *Input) {
			in.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "team", Value: "xy", Effect: corev1.TaintEffectNoSchedule}}
			in.Nodes[1].Spec.Taints = []corev1.Taint{taint("team")}
		}},
		{"less nodes than do not match", "0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 2 node(s) " +
			"didn't match Pod's node affinity/selector.", func(in *Input) {
			in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd", "arch": "arm64"}
		}},
		{"no node matches the selector", "0/3 nodes are available: 3 node(s) didn't match pod affinity rules.",
			func(in *Input) { in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"} }},
		{"all nodes that match", "0/3 nodes are available: 2 node(s) didn't match pod affinity rules.", func(in *Input) {
			withLabels(in, "disk", "ssd", "ssd")
			in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}},
		{"some nodes that match", "0/3 nodes are available: 3 node(s) didn't match pod affinity rules.", func(in *Input) {
			withLabels(in, "disk", "ssd", "ssd")
			in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}},
		{"no reasons", "0/3 nodes are available: ", func(*Input) {}},
		{"no list of nodes", "something else", func(*Input) {}},
		{"alternatives", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", func(in *Input) {
			tolerateAll(in)
			in.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			in.Pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists},
						{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}}},
					{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
						Values: []string{"n9"}}}},
				}}}}
		}},
		{"affinity of both kinds", "0/3 nodes are available: 1 node(s) didn't match pod affinity rules, 2 node(s) didn't " +
			"match pod anti-affinity rules.", affine},
		{"affinity without terms", "0/3 nodes are available: 1 node(s) didn't match pod affinity rules, 2 node(s) didn't " +
			"match pod anti-affinity rules.", func(in *Input) { in.Pod.Spec.Affinity = &corev1.Affinity{} }},
		{"four reasons", "0/4 nodes are available: 1 node(s) exceed max volume count, 1 node(s) had no available disk, 1 " +
			"cannot allocate all claims, 1 node(s) did not have enough free storage.", func(*Input) {}},
	}
	for _, reason := range []string{"node(s) didn't match the requested node name", "waiting for minCount pods",
		"node(s) didn't match Pod's required features", "node(s) didn't find available persistent volumes to bind"} {
		scenes = append(scenes, scene{reason, "0/3 nodes are available: 3 " + reason + ".", func(*Input) {}})
	}
	return scenes
}

// affine gives a pod affinity, anti-affinity and spread constraints.
func affine(in *Input) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	in.Pod.Spec.Affinity = &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: web, TopologyKey: "zone"}, {LabelSelector: web, TopologyKey: "rack"}}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: web, TopologyKey: "host"}}},
	}
	in.Pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{MaxSkew: 2, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web},
		{MaxSkew: 1, TopologyKey: "host", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: web},
	}
}

func placedScenes() []scene {
	bound := func(set func(*Input)) func(*Input) {
		return func(in *Input) {
			in.Pod.Spec.NodeName = "n1"
			set(in)
		}
	}
	condition := func(status corev1.ConditionStatus) func(*Input) {
		return func(in *Input) {
			in.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status,
				LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
		}
	}
	return []scene{
		{"nothing is known", "", bound(func(*Input) {})},
		{"a condition", "", bound(condition(corev1.ConditionTrue))},
		{"a condition that is not true", "", bound(condition(corev1.ConditionFalse))},
		{"a static pod", "", bound(func(in *Input) {
			in.Pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		})},
		{"all requirements", "", bound(func(in *Input) {
			affine(in)
			priority := int32(9)
			in.Pod.Spec.Priority, in.Pod.Spec.SchedulerName = &priority, ""
			in.Pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
			in.Claims = []Claim{{Name: "none"}, {Name: "data", Volume: zonal()}}
			in.Events = []corev1.Event{{Reason: "Pulled"}, {Reason: "Scheduled", ReportingController: "s",
				LastTimestamp: metav1.NewTime(now)}}
		})},
		{"evicted, by an event and a condition", "", bound(func(in *Input) {
			in.Events = []corev1.Event{ended("Killing", "kubelet", "Stopping container main"),
				ended("Preempted", "s", "Preempted by a pod on node n1")}
			in.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: corev1.PodReasonPreemptionByScheduler}}
		})},
		{"evicted, by an event, and ending for another reason", "", bound(func(in *Input) {
			in.Events = []corev1.Event{ended("Preempted", "s", "Preempted by a pod on node n1")}
			in.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.NewTime(now)}}
		})},
		{"containers that were stopped", "", bound(func(in *Input) {
			in.Events = []corev1.Event{ended("Killing", "kubelet", "Stopping container main")}
		})},
		{"evicted for a pod that only the reference names", "", bound(func(in *Input) {
			e := ended("Preempted", "s", "for a group")
			e.Related = &corev1.ObjectReference{Kind: "Pod", Namespace: "infra", Name: "proxy"}
			in.Events = []corev1.Event{e}
		})},
		{"a taint of the node", "", bound(func(in *Input) {
			in.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "DeletionByTaintManager", Message: "NoExecute", LastTransitionTime: metav1.NewTime(now)}}
		})},
		{"a condition that does not hold", "", bound(func(in *Input) {
			in.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse,
				Reason: "EvictionByEvictionAPI"}}
		})},
		{"a reason of the kubelet of a pod that runs", "", bound(func(in *Input) {
			in.Pod.Status.Phase, in.Pod.Status.Reason = corev1.PodRunning, "Evicted"
		})},
		{"a pod that failed on its own", "", bound(func(in *Input) {
			in.Pod.Status.Phase, in.Pod.Status.Reason = corev1.PodFailed, "Error"
		})},
		{"a node that shut down", "", bound(func(in *Input) {
			in.Pod.Status.Phase, in.Pod.Status.Reason, in.Pod.Status.Message = corev1.PodFailed, "NodeShutdown", "bye"
		})},
		{"a pending pod with a former one", "", func(in *Input) {
			in.Ended = []corev1.Event{ended("Killing", "kubelet", "Stopping container main")}
		}},
	}
}
