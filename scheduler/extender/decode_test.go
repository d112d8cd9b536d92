package extender

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecodeNodeArguments(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
		wantErr    string
	}{
		{"as schedulers write it", `{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":["a","b"]}`, []string{
			"a", "b"}, ""},
		{"one", `{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":["a"]}`, []string{"a"}, ""},
		{"one without a name", `{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":[""]}`, []string{""}, ""},
		{"none", `{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":[]}`, []string{}, ""},
		{"another order", `{"NodeNames":["a","b"],"Pod":{"metadata":{"name":"p"}}}`, []string{"a", "b"}, ""},
		{"with spaces", "{\"Pod\":{\"metadata\":{\"name\":\"p\"}}, \"NodeNames\": [\"a\" , \"b\"] }\n", []string{
			"a", "b"}, ""},
		{"in lower case", `{"pod":{"metadata":{"name":"p"}},"nodenames":["a"]}`, []string{"a"}, ""},
		{"escaped", `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["a","\u0062"]}`, []string{"a", "b"}, ""},
		{"twice", `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["x"],"NodeNames":["a"]}`, []string{"a"}, ""},
		{"of something else", `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["a"],"More":{"x":1,"NodeNames":["b"]}}`,
			[]string{"a"}, ""},
		{"of the end of something else", `{"NodeNames":["a"],"Pod":{"metadata":{"name":"p","NodeNames":["b"]}}}`, []string{
			"a"}, ""},
		{"numbers", `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["a",1]}`, nil, "field NodeNames"},
		{"no comma", `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["a""b"]}`, nil, "not JSON at byte"},
		{"broken pod", `{"Pod":{"metadata":{"name":"p"},"NodeNames":["a"]}`, nil, "is truncated"},
		{"no pod", `{"NodeNames":["a"]}`, nil, "no Pod"},
		{"nothing but names", `{,"NodeNames":["a"]}`, nil, "not JSON at byte"},
		{"no nodes", `{"Pod":{}}`, nil, "neither NodeNames nor Nodes"},
		{"both", `{"Pod":{},"Nodes":{"items":[]},"NodeNames":["a"]}`, nil, "both NodeNames and Nodes"},
		{"nameless node", `{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"a"}},null]}}`, nil, "node 1 of Nodes: no name"},
		{"node of another type", `{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"a"}},[]]}}`, nil, "node 1 of Nodes"},
		{"a list", `[1, 2]`, nil, "unexpected array"},
		{"a string", `"x"`, nil, "unexpected string"},
		{"null", `null`, nil, "no Pod"},
		{"two documents", `{"Pod":{},"NodeNames":["a"]}{}`, nil, "not JSON at byte"},
		{"not JSON", `<html>`, nil, "not JSON at byte 1"},
		{"empty", "  \n", nil, "the body is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := decodeNodeArguments([]byte(c.body), limits{nodes: 10})
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("got %v, want %q", err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, a.names); diff != "" || a.pod.Name != "p" {
				t.Error(diff, a.pod.Name)
			}
		})
	}
}

func TestDecodePreemptArguments(t *testing.T) {
	for _, c := range []struct{ name, body, wantErr string }{
		{"by UID",
			`{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}`, ""},
		{"whole", `{"Pod":{},"NodeNameToVictims":{"a":{"Pods":[{"metadata":{"uid":"u"}}],"NumPDBViolations":1}}}`, ""},
		{"both", `{"Pod":{},"NodeNameToVictims":{"a":{}},"NodeNameToMetaVictims":{"a":{}}}`, "both"},
		{"null victims", `{"Pod":{},"NodeNameToMetaVictims":{"a":null}}`, `victims on node "a" are null`},
		{"null whole victims", `{"Pod":{},"NodeNameToVictims":{"a":null}}`, `victims on node "a" are null`},
		{"null victim", `{"Pod":{},"NodeNameToMetaVictims":{"a":{"Pods":[null]}}}`, `victim 0 on node "a" is null`},
		{"null whole victim", `{"Pod":{},"NodeNameToVictims":{"a":{"Pods":[null]}}}`, `victim 0 on node "a" is null`},
		{"no pod", `{}`, "no Pod"},
		{"half", `{"Pod":{}`, "is truncated after 9 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := decodePreemptArguments([]byte(c.body), limits{nodes: 10})
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("got %v, want %q", err, c.wantErr)
				}
				return
			}
			if err != nil || len(a.victims) != 1 || a.victims["a"].Pods[0].UID != "u" || a.victims["a"].NumPDBViolations != 1 {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
}

func TestDecodeBindArgumentsRequiresAllFields(t *testing.T) {
	for body, wantErr := range map[string]string{
		`{"PodName":"p","PodNamespace":"n","PodUID":"u","Node":"a"}`: "",
		`{"PodName":"p","PodNamespace":"n","Node":"a"}`:              "",
		`{"PodName":"p","PodNamespace":"n","PodUID":"u"}`:            "no Node",
		`{"PodNamespace":"n","PodUID":"u","Node":"a"}`:               "no PodName",
		`{"PodName":"p","PodUID":"u","Node":"a"}`:                    "no PodNamespace",
		`{"PodName":3}`: "field PodName: unexpected number",
	} {
		if _, err := decodeBindArguments([]byte(body)); wantErr == "" && err != nil || wantErr != "" &&
			(err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("%s: got %v, want %q", body, err, wantErr)
		}
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	server, _ := serveWith(t, nil, Options{MaxBody: 100}, labelled())
	large := `{"Pod":{},"NodeNames":["` + strings.Repeat("a", 100) + `"]}`
	for _, verb := range []string{VerbFilter, VerbPrioritize, VerbPreempt, VerbBind} {
		if status, body := post(t, server, verb, `{"Pod":`); status != http.StatusBadRequest ||
			!strings.Contains(string(body), "extender pmk-extender: "+verb+": read the request: the body is truncated") {
			t.Errorf("%s: half a body: %d %s", verb, status, body)
		}
		if status, body := post(t, server, verb, large); status != http.StatusRequestEntityTooLarge ||
			!strings.Contains(string(body), "more than 100 bytes") {
			t.Errorf("%s: large body: %d %s", verb, status, body)
		}
		response, err := http.Get(server.URL + "/" + verb)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: GET is answered with %s, %v", verb, response.Status, err)
		}
	}
}

func TestRequestsOfEverySchedulerAreAnswered(t *testing.T) {
	server, _ := serveWith(t, filledCache(t, newNode("a", nil), newNode("b", map[string]string{"no": ""})),
		Options{Verbs: DefaultVerbs()}, labelled())
	const pod = `{"metadata":{"name":"p","namespace":"d","uid":"u1"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	const nodes = `[{"metadata":{"name":"a"}},{"metadata":{"name":"b","labels":{"no":""}}}]`
	cases := []struct {
		name, path, body string
		status           int
		want             string // part of the answer
	}{
		{"names", "filter", `{"Pod":` + pod + `,"Nodes":null,"NodeNames":["a","b"]}`, 200, `"NodeNames":["a"]`},
		{"lower case", "filter", `{"pod":` + pod + `,"nodenames":["a","b"]}`, 200, `"NodeNames":["a"]`},
		{"nodes", "filter", `{"Pod":` + pod + `,"Nodes":{"metadata":{},"items":` + nodes + `},"NodeNames":null}`, 200,
			`"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"`},
		{"nodes in upper case", "filter", `{"POD":` + pod + `,"NODES":{"Items":` + nodes + `}}`, 200, `"name":"a"`},
		{"both", "filter", `{"Pod":` + pod + `,"Nodes":{"items":` + nodes + `},"NodeNames":["a"]}`, 400,
			"both NodeNames and Nodes"},
		{"no names", "filter", `{"Pod":` + pod + `,"Nodes":null,"NodeNames":[]}`, 200, `"NodeNames":[]`},
		{"neither", "filter", `{"Pod":` + pod + `,"Nodes":null,"NodeNames":null}`, 400, "neither NodeNames nor Nodes"},
		{"no pod", "prioritize", `{"Pod":null,"NodeNames":["a"]}`, 400, "no Pod"},
		{"a verb with a slash", "/filter", `{"Pod":` + pod + `,"NodeNames":["a","b"]}`, 200, `"NodeNames":["a"]`},
		{"two slashes", "//prioritize", `{"Pod":` + pod + `,"NodeNames":["a"]}`, 200, `"Host":"a"`},
		{"victims by UID", "preempt", `{"Pod":` + pod + `,"NodeNameToVictims":null,"NodeNameToMetaVictims":{"a":{"Pods":` +
			`[{"UID":"v1"}],"NumPDBViolations":0},"b":{"Pods":null,"NumPDBViolations":1}}}`, 200, `"a":{"Pods":[{"UID":"v1"}]`},
		{"a verb that is not served", "bind", `{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"a"}`, 404,
			"serves filter, prioritize, preempt"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, body := post(t, server, c.path, c.body)
			if status != c.status || !strings.Contains(string(body), c.want) {
				t.Errorf("got %d %s, want %d %s", status, body, c.status, c.want)
			}
		})
	}
}

// FuzzNodeArguments searches bodies of filter and prioritize that crash the decoder, or that its
// fast path decodes differently.
func FuzzNodeArguments(f *testing.F) {
	for _, body := range []string{
		`{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":["a","b"]}`,
		`{"Pod":{},"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"}}]},"NodeNames":null}`,
		`{"NodeNames":["a"],"Pod":{"NodeNames":["b"]}}`, `{"Pod":{},"NodeNames":["\u0061"]}`, `{"Pod":{},"NodeNames":[""]}`,
		`{,"NodeNames":["a"]}`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := decodeNodeArguments(body, limits{nodes: 10})
		var wire struct {
			Pod       *corev1.Pod
			Nodes     *struct{ Items []json.RawMessage }
			NodeNames *[]string
		}
		plainErr := unmarshal(body, &wire)
		if plainErr != nil {
			if err == nil {
				t.Fatalf("it is taken, although encoding/json says %v", plainErr)
			}
			return
		}
		if wire.NodeNames != nil && err == nil {
			if diff := cmp.Diff(*wire.NodeNames, a.names); diff != "" {
				t.Fatal(diff)
			}
		}
		if err != nil {
			return
		}
		answerRequest(t, a)
	})
}

// answerRequest answers a decoded request without a cluster.
func answerRequest(t *testing.T, a *nodeArguments) {
	t.Helper()
	handle, err := NewHandle(HandleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Handle: handle, Policies: []Policy{{Plugin: labelled()}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.newCall(t.Context(), a.pod)
	if err != nil {
		t.Fatal(err)
	}
	rejected, err := c.filter(a)
	if errors.As(err, new(*requestError)) {
		return
	}
	if err != nil || len(rejected) != len(a.names) {
		t.Fatal(len(rejected), err)
	}
	if _, err := c.prioritize(a); err != nil {
		t.Fatal(err)
	}
}

// FuzzPreemptArguments searches bodies of preempt that crash the decoder or the processing.
func FuzzPreemptArguments(f *testing.F) {
	f.Add(
		[]byte(
			`{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}`))
	f.Add([]byte(`{"Pod":{},"NodeNameToVictims":{"a":{"Pods":[{"metadata":{"uid":"u"}}],"NumPDBViolations":1}}}`))
	f.Add([]byte(`{"Pod":{},"NodeNameToMetaVictims":{"a":null}}`))
	c := filledCache(f, newNode("a", nil), newPod("v", "a", 100))
	_, e := serveWith(f, c, Options{}, labelled())
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := decodePreemptArguments(body, limits{nodes: 10})
		if err != nil {
			return
		}
		c, err := e.newCall(t.Context(), a.pod)
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.preempt(a)
		if err != nil || len(result.NodeNameToMetaVictims) > len(a.victims) {
			t.Fatal(result, err)
		}
	})
}

// FuzzBindArguments searches bodies of bind that crash the decoder or are accepted although
// incomplete.
func FuzzBindArguments(f *testing.F) {
	f.Add([]byte(`{"PodName":"p","PodNamespace":"n","PodUID":"u","Node":"a"}`))
	f.Add([]byte(`{"PodName":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := decodeBindArguments(body)
		if err == nil && (a.PodName == "" || a.PodNamespace == "" || a.Node == "") {
			t.Fatalf("taken: %+v", a)
		}
	})
}

// FuzzConfiguration searches files that crash the parser, or whose policies are incomplete.
func FuzzConfiguration(f *testing.F) {
	f.Add([]byte("apiVersion: pmk-sched.io/v1alpha1\nkind: Extender\npolicies:\n- name: LoadAware\n  args: {a: 1}\n"))
	f.Add([]byte(`{"apiVersion": "pmk-sched.io/v1alpha1", "kind": "Extender", "policies": [{"name": "x", "name": "y"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfiguration(text)
		if err != nil {
			return
		}
		for _, p := range c.Policies {
			if p.Name == "" {
				t.Fatal("a policy has no name")
			}
		}
		again, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseConfiguration(again); err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, again)
		}
	})
}

// The compactor shares the strings that repeat.
func TestCompactedObjectsKeepWhatPoliciesRead(t *testing.T) {
	pod := newPod("p", "n", 100)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	pod.Labels = map[string]string{"app": "web"}
	pod.Annotations = map[string]string{lastApplied: "{}", "mine": "kept"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	requests := pod.Spec.Containers[0].Resources.Requests
	larger := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "resized"})
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "main", Image: "x", Resources: &corev1.ResourceRequirements{Requests: requests, Limits: requests}},
		{Name: "resized", Image: "x", AllocatedResources: larger,
			Resources: &corev1.ResourceRequirements{Requests: larger, Limits: larger}},
	}}
	want := newPod("p", "n", 100)
	want.Labels, want.Annotations = map[string]string{"app": "web"}, map[string]string{"mine": "kept"}
	want.Spec.Containers = append(want.Spec.Containers, corev1.Container{Name: "resized"})
	want.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "resized", AllocatedResources: larger,
		Resources: &corev1.ResourceRequirements{Requests: larger}}}
	want.Spec.Volumes, want.Status.Phase = []corev1.Volume{{Name: "data"}}, corev1.PodRunning
	got, err := newCompactor().compact(pod)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// The sum of a node saturates, and is right again when the pod is gone.
func TestNodesCountRequestsAsTheScheduler(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	small, huge := newPod("small", "n", 100), newPod("huge", "n", 100)
	small.Spec.InitContainers = []corev1.Container{small.Spec.Containers[0]}
	small.Spec.InitContainers[0].Name, small.Spec.InitContainers[0].RestartPolicy = "sidecar", &always
	small.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Resources: &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
	requests := huge.Spec.Containers[0].Resources.Requests
	requests[corev1.ResourceMemory], requests["example.com/gpu"] = resource.MustParse("6Ei"), resource.MustParse("1")
	huge.Spec.Containers = append(huge.Spec.Containers, huge.Spec.Containers[0])
	twin := huge.DeepCopy()
	twin.UID = "twin"
	c := filledCache(t, newNode("n", nil), small, huge, twin)
	check := func(cpu, memory, gpus int64) {
		t.Helper()
		got := c.nodes["n"].requested
		if got.MilliCPU != cpu || got.Memory != memory || got.Scalar["example.com/gpu"] != gpus {
			t.Errorf("got %+v, want %d, %d and %d", got, cpu, memory, gpus)
		}
	}
	check(2500, math.MaxInt64, 4)
	c.removePod(twin)
	check(2300, math.MaxInt64, 2)
	c.removePod(huge)
	check(2100, 0, 0)
}
