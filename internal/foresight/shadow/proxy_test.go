package shadow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

// cluster is an API server that has pods, and refuses to change anything.
type cluster struct {
	t      *testing.T
	pods   []any
	events chan string // of the watch
	reads  []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer of the user" {
		c.t.Errorf("the API server got %s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path != readonly.PodsPath:
		fmt.Fprintf(w, "read %s", r.URL.Path)
	case r.URL.Query().Get("watch") == "":
		if err := json.NewEncoder(w).Encode(map[string]any{"kind": "PodList",
			"metadata": map[string]any{"resourceVersion": "7"}, "items": c.pods}); err != nil {
			c.t.Error(err)
		}
	default:
		c.reads = append(c.reads, r.URL.Query().Get("resourceVersion"))
		for event := range c.events {
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// podJSON returns a pod: of a scheduler, on a node, at a version. A reason is the reason of its
// scheduler for not placing it.
func podJSON(name, scheduler, node string, version int, reason string) map[string]any {
	status := map[string]any{"phase": "Pending"}
	if reason != "" {
		status["conditions"] = []any{map[string]any{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
			"message": reason}}
	}
	spec := map[string]any{"schedulerName": scheduler, "priority": 9007199254740993}
	if node != "" {
		spec["nodeName"] = node
	}
	return map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": name, "uid": "uid-" + name,
			"resourceVersion": fmt.Sprint(version)}, "spec": spec, "status": status,
	}
}

func eventLine(t *testing.T, kind string, object map[string]any) string {
	t.Helper()
	line, err := encodeEvent(kind, object)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// shadowClient is a scheduler that talks to the proxy.
type shadowClient struct {
	t     *testing.T
	url   string
	token string
	// nodes are its decisions about each pod, one for each time it is asked; a decision with a space
	// is a reason. The last one is repeated.
	nodes map[string][]string
	seen  []string
}

func (s *shadowClient) do(method, path, contentType string, body []byte) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), method, s.url+path,
		bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

const selector = "?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"

// watch reads the watch until it ends, and decides about each pod that it sees.
func (s *shadowClient) watch(version string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet,
		s.url+readonly.PodsPath+selector+"&watch=true&resourceVersion="+version, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		var event struct {
			Type   string
			Object map[string]any
		}
		if err := decode(lines.Bytes(), &event); err != nil {
			s.t.Fatal(err)
		}
		p := parsePod(event.Object)
		if p.namespace == "default" {
			s.rehearse(event.Type, p)
			continue
		}
		s.seen = append(s.seen, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", event.Type, p.uid,
			text(child(p.fields, "metadata"), "resourceVersion"), p.scheduler, p.node)))
		if event.Type == "ADDED" && p.node == "" && p.scheduler == "packer" {
			s.decide(p)
		}
	}
}

// rehearse refuses the first pod.
func (s *shadowClient) rehearse(kind string, p *pod) {
	s.t.Helper()
	if kind != "ADDED" {
		return
	}
	path := "/api/v1/namespaces/default/pods/" + p.name + "/status"
	if code, body := s.do(http.MethodPatch, path, "application/strategic-merge-patch+json",
		refusalOf("no such node")); code != 200 {
		s.t.Errorf("status of %s: %d %s", p.name, code, body)
	}
}

func refusalOf(reason string) []byte {
	return fmt.Appendf(nil, `{"status":{"conditions":[{"type":"PodScheduled","status":"False","message":%q}]}}`, reason)
}

func (s *shadowClient) decide(p *pod) {
	s.t.Helper()
	if p.fields["kind"] != "Pod" || p.fields["apiVersion"] != "v1" {
		s.t.Errorf("the copy of %s is a %v", p.name, p.fields["kind"])
	}
	all := s.nodes[p.name]
	if len(all) == 0 {
		s.t.Fatalf("the shadow sees %s", p.name)
	}
	decision := all[0]
	if len(all) > 1 {
		s.nodes[p.name] = all[1:]
	}
	path := "/api/v1/namespaces/shop/pods/" + p.name
	if strings.Contains(decision, " ") {
		s.do(http.MethodDelete, "/api/v1/namespaces/shop/pods/victim", "", nil)
		if code, body := s.do(http.MethodPatch, path+"/status", "application/strategic-merge-patch+json",
			refusalOf(decision)); code != 200 || !strings.Contains(body, p.name) {
			s.t.Errorf("status of %s: %d %s", p.name, code, body)
		}
		return
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: p.name},
		Target: corev1.ObjectReference{Kind: "Node", Name: decision}}
	binding.UID = "another"
	if code, _ := s.do(http.MethodPost, path+"/binding", runtime.ContentTypeProtobuf,
		protobuf(s.t, binding)); code != 409 {
		s.t.Errorf("a binding of another pod of that name: %d", code)
	}
	binding.UID = types.UID(p.uid)
	if code, body := s.do(http.MethodPost, path+"/binding", runtime.ContentTypeProtobuf,
		protobuf(s.t, binding)); code != 409 || !strings.Contains(body, "binds no pods") {
		s.t.Errorf("binding of %s: %d %s", p.name, code, body)
	}
	failed := []byte(
		`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulerError","message":"binding rejected"}]}}`)
	if code, body := s.do(http.MethodPatch, path+"/status", "application/strategic-merge-patch+json",
		failed); code != 200 {
		s.t.Errorf("status of %s: %d %s", p.name, code, body)
	}
}

// protobuf encodes an object as kube-scheduler does.
func protobuf(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no serializer")
	}
	body, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// start starts a proxy before a cluster.
func start(t *testing.T, c *cluster) (*proxy, *shadowClient) {
	t.Helper()
	c.t = t
	api := httptest.NewServer(c)
	t.Cleanup(api.Close)
	p, err := newProxy(&rest.Config{Host: api.URL, BearerToken: "of the user"}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	p.names = names{observed: "default-scheduler", shadow: "packer", profiles: []string{"packer"}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, &shadowClient{t: t, url: server.URL, token: p.Token()}
}

func TestEachPodIsDecidedWhenTheObservedSchedulerHasDecided(t *testing.T) {
	c := &cluster{events: make(chan string, 100), pods: []any{
		podJSON("old", "default-scheduler", "a", 1, ""), podJSON("stuck", "default-scheduler", "", 2, "no room"),
		podJSON("waits", "default-scheduler", "", 3, ""), podJSON("of-another", "packer", "", 4, ""),
		podJSON("victim", "another", "a", 5, ""),
	}}
	for i, name := range []string{"same", "tied", "differs", "refused", "waits"} {
		if name != "waits" {
			c.events <- eventLine(t, "ADDED", podJSON(name, "default-scheduler", "", 10*i+10, ""))
		}
		c.events <- eventLine(t, "MODIFIED", podJSON(name, "default-scheduler", "a", 10*i+11, ""))
	}
	c.events <- eventLine(t, "ADDED", podJSON("gone", "default-scheduler", "", 60, ""))
	c.events <- eventLine(t, "DELETED", podJSON("gone", "default-scheduler", "", 61, ""))
	c.events <- eventLine(t, "MODIFIED", podJSON("old", "default-scheduler", "a", 62, ""))
	c.events <- eventLine(t, "BOOKMARK", map[string]any{"metadata": map[string]any{"resourceVersion": "70"}})
	close(c.events)
	p, s := start(t, c)
	s.nodes = map[string][]string{
		"stuck": {"b"}, "same": {"a"}, "tied": {"b", "b", "a"}, "differs": {"b"}, "refused": {"0/2 nodes are available"},
		"waits": {"a"},
	}
	_, list := s.do(http.MethodGet, readonly.PodsPath+selector, "", nil)
	if !strings.Contains(list, `"resourceVersion":"7000"`) || !strings.Contains(list, `"name":"old"`) ||
		!strings.Contains(list, notObserved) ||
		strings.Contains(list, "stuck") || strings.Contains(list, "waits") || !strings.Contains(list, "9007199254740993") {
		t.Errorf("list: %s", list)
	}
	s.watch("7000")
	got := Report{}
	p.judge.report(&got)
	want := Report{
		Same: 2, Noise: []Difference{{Namespace: "shop", Name: "tied", Node: "b", Observed: "a"}}, Undecided: []Difference{},
		Differences: []Difference{
			{Namespace: "shop", Name: "differs", Node: "b", Observed: "a"},
			{Namespace: "shop", Name: "refused", Observed: "a", Reason: "0/2 nodes are available"},
			{Namespace: "shop", Name: "stuck", Node: "b"},
		},
		Evictions: []Eviction{{Namespace: "shop", Name: "victim", For: "shop/refused"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantSeen := []string{
		"ADDED uid-stuck-shadow-1 7001 packer", "DELETED uid-stuck-shadow-1 7002 packer",
		"ADDED uid-same-shadow-2 10001 packer", "DELETED uid-same-shadow-2 10002 packer",
		"MODIFIED uid-same 11000 default-scheduler a",
		// The first decision was made before the shadow could know the pod before.
		"ADDED uid-tied-shadow-3 20001 packer", "DELETED uid-tied-shadow-3 20002 packer",
		"ADDED uid-tied-shadow-4 20003 packer", "DELETED uid-tied-shadow-4 20004 packer",
		"ADDED uid-tied-shadow-5 20005 packer", "DELETED uid-tied-shadow-5 20006 packer",
		"MODIFIED uid-tied 21000 default-scheduler a",
	}
	if diff := cmp.Diff(wantSeen, s.seen[:min(len(wantSeen), len(s.seen))]); diff != "" {
		t.Errorf("the shadow sees (-want +got):\n%s", diff)
	}
	shown := slices.DeleteFunc(slices.Clone(s.seen),
		func(line string) bool { return !strings.HasPrefix(line, "ADDED uid-differs") })
	if len(shown) != 15 {
		t.Errorf("asked about the pod that differs %d times", len(shown))
	}
	for _, line := range []string{"ADDED uid-refused-shadow-22 40003 packer", "DELETED uid-refused-shadow-22 40004 packer",
		"MODIFIED uid-old 62000 default-scheduler a"} {
		if !slices.Contains(s.seen, line) {
			t.Errorf("the shadow does not see %q", line)
		}
	}
	if last := s.seen[len(s.seen)-1]; last != "BOOKMARK  70000" ||
		strings.Contains(strings.Join(s.seen, "\n"), "uid-gone") {
		t.Errorf("the last event is %q of %v", last, s.seen)
	}
}

// A watch that continues between two versions of the cluster begins again at the first, and does
// not repeat earlier decisions.
func TestWatchesContinue(t *testing.T) {
	c := &cluster{events: make(chan string, 10)}
	c.events <- eventLine(t, "ADDED", podJSON("web", "default-scheduler", "", 10, ""))
	c.events <- eventLine(t, "MODIFIED", podJSON("web", "default-scheduler", "", 11, "no room"))
	c.events <- eventLine(t, "MODIFIED", podJSON("web", "default-scheduler", "", 12, "no room"))
	c.events <- eventLine(t, "MODIFIED", podJSON("web", "default-scheduler", "a", 13, ""))
	c.events <- eventLine(t, "MODIFIED", podJSON("web", "default-scheduler", "a", 13, ""))
	close(c.events)
	p, s := start(t, c)
	s.nodes = map[string][]string{"web": {"no room", "a"}}
	s.watch("9999")
	var got Report
	p.judge.report(&got)
	if shown := strings.Count(strings.Join(s.seen, "\n"), "ADDED"); shown != 2 || got.Same != 1 ||
		!slices.Equal(c.reads, []string{"9"}) {
		t.Errorf("asked %d times, %+v, watches at %v", shown, got, c.reads)
	}
	c.pods = []any{podJSON("late", "default-scheduler", "", 20, "")}
	s.do(http.MethodGet, readonly.PodsPath+selector, "", nil)
	c.pods = []any{podJSON("late", "default-scheduler", "a", 21, "")}
	s.do(http.MethodGet, readonly.PodsPath+selector, "", nil)
	if p.judge.report(&got); got.Missed != 1 {
		t.Errorf("missed %d", got.Missed)
	}
}

// The initial events of a watch are complete before the shadow decides.
func TestInitialEventsOfAWatchComeFirst(t *testing.T) {
	c := &cluster{events: make(chan string, 10)}
	c.events <- eventLine(t, "ADDED", podJSON("stuck", "default-scheduler", "", 5, "no room"))
	c.events <- eventLine(t, "ADDED", podJSON("old", "default-scheduler", "a", 6, ""))
	c.events <- eventLine(t, "BOOKMARK",
		map[string]any{"metadata": map[string]any{"resourceVersion": "7",
			"annotations": map[string]any{initialEventsEnd: "true"}}})
	close(c.events)
	p, s := start(t, c)
	s.nodes = map[string][]string{"stuck": {"b"}}
	s.watch("&sendInitialEvents=true&allowWatchBookmarks=true")
	want := []string{
		"ADDED uid-old 6000 default-scheduler a", "BOOKMARK  7000",
		"ADDED uid-stuck-shadow-1 7001 packer", "DELETED uid-stuck-shadow-1 7002 packer",
		"ADDED uid-stuck-shadow-2 7003 packer", "DELETED uid-stuck-shadow-2 7004 packer",
	}
	if diff := cmp.Diff(want, s.seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got Report
	if p.judge.report(&got); got.Missed > 0 {
		t.Errorf("missed %d", got.Missed)
	}
}

// The cluster of the test refuses everything but reads with the user's token.
func TestNothingButReadsReachesTheAPIServer(t *testing.T) {
	_, s := start(t, &cluster{})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
	lease := "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	for _, tc := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{http.MethodGet, "/api/v1/nodes", "", 200, "read /api/v1/nodes"},
		{http.MethodPost, "/api/v1/namespaces/shop/events", `{"kind":"Event"}`, 201, `{"kind":"Event"}`},
		{http.MethodPut, "/api/v1/namespaces/shop/persistentvolumeclaims/data", string(protobuf(t, claim)), 409,
			"no volumes"},
		{http.MethodPatch, "/api/v1/namespaces/shop/events/web.1", `{"count":2}`, 404, "not kept"},
		{http.MethodPost, "/api/v1/namespaces/shop/pods/web/eviction", `{}`, 201, "{}"},
		{http.MethodGet, "/api/v1/namespaces/proxy/pods/exec", "", 200, "read /api/v1/namespaces/proxy/pods/exec"},
		{http.MethodPatch, "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims/gpu/status", `{}`, 200,
			"read /apis/resource.k8s.io/v1/namespaces/shop/resourceclaims/gpu"},
		{http.MethodDelete, "/api/v1/namespaces/shop/pods/web", "", 200, "Success"},
		{http.MethodPost, "/api/v1/namespaces/shop/pods/web/binding", string(protobuf(t, &corev1.Binding{})), 409,
			"too late"},
		{http.MethodGet, "/api/v1/namespaces/shop/pods/web/exec", "", 403, "may only read"},
		{http.MethodGet, "/api/v1/nodes/a/proxy/metrics", "", 403, "may only read"},
		{http.MethodGet, lease + "/kube-scheduler", "", 404, "has not written"},
		{http.MethodPost, lease,
			`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"kube-scheduler"}}`, 201,
			"kube-scheduler"},
		{http.MethodGet, lease + "/kube-scheduler", "", 200, `"Lease"`},
		{http.MethodPut, lease + "/kube-scheduler", `{"renewed":true}`, 200, "renewed"},
		{http.MethodGet, lease + "/kube-scheduler", "", 200, "renewed"},
	} {
		if code, body := s.do(tc.method, tc.path, "application/json", []byte(tc.body)); code != tc.code ||
			!strings.Contains(body, tc.want) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, code, body)
		}
	}
	s.token = "guessed"
	if code, _ := s.do(http.MethodGet, "/api/v1/nodes", "", nil); code != 401 {
		t.Errorf("with another token: %d", code)
	}
}

// An aggregated API can offer connections too, such as the console of a virtual machine.
func TestNoConnectionIsUpgraded(t *testing.T) {
	p, s := start(t, &cluster{})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
		"/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachineinstances/web/console", http.NoBody)
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "websocket")
	response := httptest.NewRecorder()
	p.ServeHTTP(response, request)
	if response.Code != http.StatusForbidden || !strings.Contains(response.Body.String(), "may only read") {
		t.Errorf("got %d %s", response.Code, response.Body)
	}
}
