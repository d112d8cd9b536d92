package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	object, err := snapshot.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// kindNamed returns a kind of a snapshot.
func kindNamed(t *testing.T, name string) *snapshot.Kind {
	t.Helper()
	for _, kind := range snapshot.Kinds() {
		if kind.Name == name {
			return kind
		}
	}
	t.Fatalf("no kind %s", name)
	return nil
}

// Each scenario schedules the expected pods. Drain drains the node n.
func TestPodsThatScenariosSchedule(t *testing.T) {
	const keep, schedule, leave = scenario.Keep, scenario.Schedule, scenario.Leave
	type actions struct{ pending, all, drain scenario.Action }
	cases := map[string]struct {
		pod  string
		want actions
	}{
		"pending":            {`{"spec":{},"status":{"phase":"Pending"}}`, actions{schedule, schedule, leave}},
		"without a status":   {`{"spec":{}}`, actions{schedule, schedule, leave}},
		"an empty node name": {`{"spec":{"nodeName":""}}`, actions{schedule, schedule, leave}},
		"bound, not started": {`{"spec":{"nodeName":"n"},"status":{"phase":"Pending"}}`, actions{keep, schedule, schedule}},
		"running":            {`{"spec":{"nodeName":"n"},"status":{"phase":"Running"}}`, actions{keep, schedule, schedule}},
		"of another node":    {`{"spec":{"nodeName":"m"},"status":{"phase":"Running"}}`, actions{keep, schedule, keep}},
		"finished":           {`{"spec":{"nodeName":"n"},"status":{"phase":"Failed"}}`, actions{keep, keep, keep}},
		"finished, no node":  {`{"spec":{},"status":{"phase":"Failed"}}`, actions{keep, keep, keep}},
		"being deleted":      {`{"metadata":{"deletionTimestamp":"x"},"spec":{}}`, actions{keep, keep, keep}},
		"bound and deleted":  {`{"metadata":{"deletionTimestamp":"x"},"spec":{"nodeName":"n"}}`, actions{keep, keep, keep}},
		"of a DaemonSet": {`{"metadata":{"ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"n"}}`,
			actions{keep, keep, keep}},
		"static": {`{"metadata":{"ownerReferences":[{"kind":"Node"}]},"spec":{"nodeName":"n"}}`,
			actions{keep, keep, keep}},
		"of a ReplicaSet": {`{"metadata":{"ownerReferences":[{"kind":"ReplicaSet"}]},"spec":{"nodeName":"n"}}`,
			actions{keep, schedule, schedule}},
	}
	kind := kindNamed(t, "Pod")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for of, want := range map[*scenario.Scenario]scenario.Action{
				new(scenario.Pending()): tc.want.pending, new(scenario.ReplaceAll()): tc.want.all,
				new(scenario.Drain([]string{"n"})): tc.want.drain,
			} {
				pod := decode(t, tc.pod)
				changed, got := of.Apply(kind, pod)
				if got != want {
					t.Errorf("%s: got %v, want %v", of.Name, got, want)
				}
				if diff := cmp.Diff(decode(t, tc.pod), pod); diff != "" {
					t.Errorf("%s changed the object: %s", of.Name, diff)
				}
				spec, _ := changed["spec"].(map[string]any)
				if name, _ := spec["schedulerName"].(string); (name != "") != (got == leave) {
					t.Errorf("%s: the scheduler is %q", of.Name, name)
				}
				if got == schedule && spec["nodeName"] != nil && spec["nodeName"] != "" {
					t.Errorf("%s: the pod has a node", of.Name)
				}
			}
		})
	}
}

func TestDrainCordonsItsNodes(t *testing.T) {
	const tainted = `{"metadata":{"name":"n"},"spec":{"taints":[{"effect":"NoSchedule","key":"node.kubernetes.io/unschedulable"}],"unschedulable":true}}`
	cases := map[string]struct{ node, want string }{
		"a node": {`{"metadata":{"name":"n"}}`, tainted},
		"one with a taint": {`{"metadata":{"name":"n"},"spec":{"taints":[{"key":"a"}]}}`,
			`{"metadata":{"name":"n"},"spec":{"taints":[{"key":"a"},{"effect":"NoSchedule","key":"node.kubernetes.io/unschedulable"}],"unschedulable":true}}`},
		"cordoned before": {tainted, tainted},
		"another node":    {`{"metadata":{"name":"m"},"spec":{}}`, `{"metadata":{"name":"m"},"spec":{}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, action := scenario.Drain([]string{"n"}).Apply(kindNamed(t, "Node"), decode(t, tc.node))
			if diff := cmp.Diff(decode(t, tc.want), got); diff != "" || action != scenario.Keep {
				t.Errorf("action %v (-want +got):\n%s", action, diff)
			}
		})
	}
}

// The removal of drained nodes leaves nothing on them.
func TestRemovedNodesAreGoneWithTheirPods(t *testing.T) {
	removal := scenario.Drain([]string{"c"}).Removal
	for name, tc := range map[string]struct {
		kind, text string
		want       scenario.Action
	}{
		"the node":        {"Node", `{"metadata":{"name":"c"}}`, scenario.Drop},
		"its drivers":     {"CSINode", `{"metadata":{"name":"c"}}`, scenario.Drop},
		"a pod":           {"Pod", `{"metadata":{"name":"p"},"spec":{"nodeName":"c"},"status":{"phase":"Running"}}`, scenario.Schedule},
		"a finished pod":  {"Pod", `{"metadata":{"name":"p"},"spec":{"nodeName":"c"},"status":{"phase":"Failed"}}`, scenario.Drop},
		"a pod elsewhere": {"Pod", `{"metadata":{"name":"p"},"spec":{"nodeName":"a"},"status":{"phase":"Running"}}`, scenario.Keep},
		"a pending pod":   {"Pod", `{"metadata":{"name":"p"},"spec":{}}`, scenario.Leave},
		"another node":    {"Node", `{"metadata":{"name":"a"}}`, scenario.Keep},
		"a DaemonSet's pod": {"Pod",
			`{"metadata":{"name":"p","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"c"}}`, scenario.Drop},
	} {
		if _, got := removal.Apply(kindNamed(t, tc.kind), decode(t, tc.text)); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestPodsAreOrderedAsInTheQueueOfAScheduler(t *testing.T) {
	pods := map[string]string{
		"n/old":       `{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`,
		"n/new":       `{"metadata":{"creationTimestamp":"2026-01-03T00:00:00Z"},"spec":{"priority":0}}`,
		"n/important": `{"metadata":{"creationTimestamp":"2026-01-04T00:00:00Z"},"spec":{"priority":1000}}`,
		"n/least":     `{"metadata":{"creationTimestamp":"2025-01-01T00:00:00Z"},"spec":{"priority":-5}}`,
		"n/also-old":  `{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`,
	}
	var list []scenario.Waiting
	for key, text := range pods {
		list = append(list, scenario.NewWaiting(key, decode(t, text), []byte(text)))
	}
	scenario.Sort(list)
	var got []string
	for _, w := range list {
		got = append(got, w.Key)
	}
	want := []string{"n/important", "n/also-old", "n/old", "n/new", "n/least"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPodsOfOtherSchedulersGetAProfileThatExists(t *testing.T) {
	cases := map[string]struct {
		pod      string
		profiles []string
		want     any
		changed  bool
	}{
		"has a profile":                {`{"spec":{"schedulerName":"b"}}`, []string{"a", "b"}, "b", false},
		"has none":                     {`{"spec":{"schedulerName":"c"}}`, []string{"a", "b"}, "a", true},
		"default, without a name":      {`{"spec":{}}`, []string{"default-scheduler"}, nil, false},
		"without a name, and no such":  {`{"spec":{}}`, []string{"a"}, "a", false},
		"default, and no such":         {`{"spec":{"schedulerName":"default-scheduler"}}`, []string{"a"}, "a", true},
		"an empty name":                {`{"spec":{"schedulerName":""}}`, []string{"a", "default-scheduler"}, "", false},
		"without a specification even": {`{}`, []string{"a"}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := decode(t, tc.pod)
			changed := scenario.UseProfile(pod, tc.profiles, "a")
			spec, _ := pod["spec"].(map[string]any)
			if changed != tc.changed || spec["schedulerName"] != tc.want {
				t.Errorf("changed %t, scheduler %v", changed, spec["schedulerName"])
			}
		})
	}
}

// complete completes an object of a kind; the only known UID is old, which becomes new.
func complete(t *testing.T, kindName, text string) (scenario.Creation, bool) {
	t.Helper()
	return scenario.Complete(kindNamed(t, kindName), decode(t, text),
		func(uid string) (string, bool) { return "new", uid == "old" })
}

func TestObjectsAreCompletedForTheAPIServer(t *testing.T) {
	cases := map[string]struct {
		kind, text, object, status string
		deleted                    bool
	}{
		"a pod": {
			kind:   "Pod",
			text:   `{"metadata":{"name":"p","uid":"u","creationTimestamp":"x","ownerReferences":[{"uid":"old"},{"uid":"other"}]},"spec":{"nodeName":"n"},"status":{"phase":"Running","startTime":"t"}}`,
			object: `{"metadata":{"name":"p","ownerReferences":[{"uid":"new"},{"uid":"other"}]},"spec":{"nodeName":"n"}}`,
			status: `{"status":{"phase":"Running","startTime":"t"}}`,
		},
		"a pending pod": {kind: "Pod", text: `{"metadata":{},"status":{"phase":"Pending"}}`, object: `{"metadata":{}}`},
		"a pod that is deleted": {
			kind: "Pod", text: `{"metadata":{"deletionTimestamp":"x"}}`, object: `{"metadata":{}}`, deleted: true,
		},
		"an iSCSI volume": {
			kind: "Pod", text: `{"spec":{"volumes":[{"iscsi":{"iqn":"i"}},{"csi":{"driver":"d"}}]}}`,
			object: `{"spec":{"volumes":[{"iscsi":{"iqn":"i","targetPortal":"snapshot"}},{"csi":{"driver":"d"}}]}}`,
		},
		"options of a mount of a volume that a snapshot does not have": {
			kind:   "Pod",
			text:   `{"spec":{"containers":[{"volumeMounts":[{"name":"keys","bindMountOptions":["noexec"]}]}]}}`,
			object: `{"spec":{"containers":[{"volumeMounts":[{"name":"keys","bindMountOptions":["noexec"],"mountPath":"/snapshot-0"}]}],"volumes":[{"name":"keys","emptyDir":{}}]}}`,
		},
		"mounts with a path, or of a volume that is there": {
			kind: "Pod",
			text: `{"spec":{"initContainers":[{"volumeMounts":[{"name":"a"},{"name":"b","mountPath":"/b"}]}],
				"containers":[{"volumeMounts":[{"name":"a"},{"name":"c"}]}],"volumes":[{"name":"c","csi":{}}]}}`,
			object: `{"spec":{"initContainers":[{"volumeMounts":[{"name":"a","mountPath":"/snapshot-0"},
					{"name":"b","mountPath":"/b"}]}],
				"containers":[{"volumeMounts":[{"name":"a","mountPath":"/snapshot-0"},{"name":"c","mountPath":"/snapshot-1"}]}],
				"volumes":[{"name":"c","csi":{}},{"name":"a","emptyDir":{}}]}}`,
		},
		"a pending pod with claims": {kind: "Pod", text: `{"status":{"phase":"Pending","resourceClaimStatuses":[]}}`, object: `{}`,
			status: `{"status":{"phase":"Pending","resourceClaimStatuses":[]}}`},
		"a PriorityClass": {kind: "PriorityClass", text: `{"value":1,"globalDefault":true}`, object: `{"value":1}`},
		"a StorageClass": {kind: "StorageClass", text: `{"metadata":{"name":"a","annotations":{"a":"b"}}}`,
			object: `{"metadata":{"name":"a"}}`},
		"a ReplicationController": {kind: "ReplicationController", text: `{"spec":{"selector":{"a":"b"}}}`,
			object: `{"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},
				"spec":{"containers":[{"image":"snapshot","name":"snapshot"}]}}}}`},
		"a StatefulSet without labels": {kind: "StatefulSet",
			text: `{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":[]},{"operator":"Exists"}]}}}`,
			object: `{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":[]},{"operator":"Exists"}]},
				"serviceName":"snapshot","template":{"metadata":{"labels":{}},
				"spec":{"containers":[{"image":"snapshot","name":"snapshot"}]}}}}`},
		"a node, with its status": {kind: "Node", text: `{"metadata":{"uid":"u"},"status":{"capacity":{"cpu":"1"}}}`,
			object: `{"metadata":{},"status":{"capacity":{"cpu":"1"}}}`},
		"a Service": {kind: "Service", text: `{"metadata":{}}`,
			object: `{"metadata":{},"spec":{"clusterIP":"None"}}`},
		"a ReplicaSet": {
			kind:   "ReplicaSet",
			text:   `{"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"In","values":["d","e"]},{"key":"f","operator":"Exists"},{"key":"g","operator":"DoesNotExist"},{"key":"a","operator":"Exists"}]}}}`,
			object: `{"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"In","values":["d","e"]},{"key":"f","operator":"Exists"},{"key":"g","operator":"DoesNotExist"},{"key":"a","operator":"Exists"}]},"template":{"metadata":{"labels":{"a":"b","c":"d","f":"snapshot"}},"spec":{"containers":[{"image":"snapshot","name":"snapshot"}]}}}}`,
		},
		"a volume that the scheduler counts": {
			kind:   "PersistentVolume",
			text:   `{"spec":{"csi":{"driver":"d"},"claimRef":{"uid":"old"}},"status":{"phase":"Bound"}}`,
			object: `{"spec":{"csi":{"driver":"d"},"claimRef":{"uid":"new"}}}`, status: `{"status":{"phase":"Bound"}}`,
		},
		"another volume": {kind: "PersistentVolume", text: `{"spec":{}}`,
			object: `{"spec":{"hostPath":{"path":"/snapshot"}}}`},
		"a CSINode": {
			kind: "CSINode", text: `{"spec":{"drivers":[{"name":"d"}]}}`,
			object: `{"spec":{"drivers":[{"name":"d","nodeID":"snapshot"}]}}`,
		},
		"a CSINode without drivers": {kind: "CSINode", text: `{}`, object: `{"spec":{"drivers":[]}}`},
		"a claim for devices": {
			kind: "ResourceClaim", text: `{"status":{"reservedFor":[{"uid":"old"}]}}`, object: `{}`,
			status: `{"status":{"reservedFor":[{"uid":"new"}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := complete(t, tc.kind, tc.text)
			if !ok || got.Deleted != tc.deleted {
				t.Errorf("created %t, deleted %t", ok, got.Deleted)
			}
			if diff := cmp.Diff(decode(t, tc.object), got.Object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			var status map[string]any
			if tc.status != "" {
				status = decode(t, tc.status)
			}
			if diff := cmp.Diff(status, got.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
	for _, kind := range []string{"Deployment", "Job", "ResourceQuota"} {
		if _, ok := complete(t, kind, `{}`); ok {
			t.Errorf("a %s is created", kind)
		}
	}
}

func TestCompleteDoesNotChangeTheObject(t *testing.T) {
	const text = `{"metadata":{"uid":"u","ownerReferences":[{"uid":"old"}]},"spec":{"claimRef":{"uid":"old"}},"status":{"phase":"Bound"}}`
	for _, kind := range snapshot.Kinds() {
		object := decode(t, text)
		scenario.Complete(kind, object, func(string) (string, bool) { return "new", true })
		if diff := cmp.Diff(decode(t, text), object); diff != "" {
			t.Errorf("%s: %s", kind.Name, diff)
		}
	}
}

func TestReferences(t *testing.T) {
	cases := map[string]struct {
		kind, text string
		want       []string
	}{
		"an owner": {"PersistentVolumeClaim", `{"metadata":{"ownerReferences":[{"uid":"a"},{"uid":"b"}]}}`,
			[]string{"a", "b"}},
		"a bound volume":   {"PersistentVolume", `{"metadata":{},"spec":{"claimRef":{"uid":"a"}}}`, []string{"a"}},
		"a claim's pods":   {"ResourceClaim", `{"status":{"reservedFor":[{"uid":"a"},{}]}}`, []string{"a"}},
		"nothing":          {"PersistentVolume", `{"spec":{}}`, nil},
		"not of that kind": {"PersistentVolumeClaim", `{"spec":{"claimRef":{"uid":"a"}}}`, nil},
		"malformed entries": {"ResourceClaim",
			`{"metadata":{"ownerReferences":["x",{"uid":3}]},"status":{"reservedFor":"x"}}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scenario.References(kindNamed(t, tc.kind), decode(t, tc.text))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// One pod is scheduled, without its node; other pending pods are left out.
func TestOnePodIsScheduled(t *testing.T) {
	s := scenario.One("shop", "web")
	for name, tt := range map[string]struct {
		pod  string
		want scenario.Action
	}{
		"pending": {`{"metadata": {"namespace": "shop", "name": "web"}, "spec": {}}`, scenario.Schedule},
		"running": {
			`{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}`,
			scenario.Schedule},
		"finished": {
			`{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}}`,
			scenario.Keep},
		"another, pending": {`{"metadata": {"namespace": "shop", "name": "other"}, "spec": {}}`, scenario.Leave},
		"another namespace": {
			`{"metadata": {"namespace": "x", "name": "web"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}`,
			scenario.Keep},
	} {
		o, action := s.Apply(kindNamed(t, "Pod"), decode(t, tt.pod))
		if action != tt.want {
			t.Errorf("%s: got action %v, want %v", name, action, tt.want)
		}
		if spec, _ := o["spec"].(map[string]any); action == scenario.Schedule && spec["nodeName"] != nil {
			t.Errorf("%s: the pod keeps its node: %v", name, o)
		}
	}
}
