package extender

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// diary is a policy that records its calls, and fails where the test wants it to.
type diary struct {
	policy
	mu    sync.Mutex
	lines []string
	fails map[string]*scheduler.Status
}

func (d *diary) note(point string, pod *corev1.Pod, node string) *scheduler.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, point+" "+pod.Name+" "+node)
	return d.fails[point]
}

func (d *diary) told() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (d *diary) Reserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	return d.note("Reserve", pod, node)
}

func (d *diary) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) {
	d.note("Unreserve", pod, node)
}

func (d *diary) PreBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	return d.note("PreBind", pod, node)
}

func (d *diary) Bind(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	return d.note("Bind", pod, node)
}

func (d *diary) PostBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) {
	d.note("PostBind", pod, node)
}

// bindings is a Binder that records pods.
type bindings struct {
	pods []string
	err  error
}

func (b *bindings) Bind(_ context.Context, pod *corev1.Pod, node string) error {
	b.pods = append(b.pods, string(pod.UID)+" "+node)
	return b.err
}

func TestBindCallsExtensionPointsInOrder(t *testing.T) {
	full := scheduler.Error(errors.New("the disk is full"))
	for _, c := range []struct {
		name      string
		fails     map[string]*scheduler.Status
		binder    bindings
		told      []string
		wantBound []string
		wantErr   string
	}{
		{"by the binder", map[string]*scheduler.Status{"Bind": scheduler.Skip()}, bindings{}, []string{
			"Reserve p n", "PreBind p n", "Bind p n", "PostBind p n"}, []string{"uid-p n"}, ""},
		{"by the policy", nil, bindings{}, []string{"Reserve p n", "PreBind p n", "Bind p n", "PostBind p n"}, nil, ""},
		{"Reserve fails", map[string]*scheduler.Status{"Reserve": scheduler.Unschedulable("taken")}, bindings{}, []string{
			"Reserve p n", "Unreserve p n"}, nil, "policy Diary, Reserve: Unschedulable: taken"},
		{"PreBind fails", map[string]*scheduler.Status{"PreBind": full}, bindings{}, []string{
			"Reserve p n", "PreBind p n", "Unreserve p n"}, nil, "policy Diary, PreBind: the disk is full"},
		{"Bind fails", map[string]*scheduler.Status{"Bind": full}, bindings{}, []string{
			"Reserve p n", "PreBind p n", "Bind p n", "Unreserve p n"}, nil,
			"bind pod default/p to node n: policy Diary, Bind: the disk is full"},
		{"the binder fails", map[string]*scheduler.Status{"Bind": scheduler.Skip()}, bindings{err: errors.New("conflict")},
			[]string{"Reserve p n", "PreBind p n", "Bind p n",
				"Unreserve p n"}, []string{"uid-p n"}, "bind pod default/p to node n: conflict"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &diary{policy: "Diary", fails: c.fails}
			server, e := serveWith(t, nil, Options{Binder: &c.binder}, d)
			got := ask[extenderv1.ExtenderBindingResult](t, server, VerbBind,
				extenderv1.ExtenderBindingArgs{PodName: "p", PodNamespace: "default", PodUID: "uid-p", Node: "n"})
			if want := c.wantErr; want != "" && got.Error != "extender pmk-extender: bind: "+want || want == "" &&
				got.Error != "" {
				t.Errorf("got error %q, want %q", got.Error, want)
			}
			if diff := cmp.Diff(c.told, d.told()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.wantBound, c.binder.pods); diff != "" {
				t.Error(diff)
			}
			if c.wantErr != "" && e.reserved.end("uid-p") {
				t.Error("a pod that was not bound is still reserved")
			}
		})
	}
}

func TestBindWithoutClusterFails(t *testing.T) {
	server, _ := serveWith(t, nil, Options{}, labelled())
	got := ask[extenderv1.ExtenderBindingResult](t, server, VerbBind,
		extenderv1.ExtenderBindingArgs{PodName: "p", PodNamespace: "default", Node: "n"})
	if !strings.Contains(got.Error, "without a cluster") || !strings.Contains(got.Error, "bindVerb") {
		t.Errorf("got %q", got.Error)
	}
}

// A policy with Reserve is called for each pod once, regardless of who bound it.
func TestReserveIsCalledForPodsSeenBound(t *testing.T) {
	c := filledCache(t, newNode("n", nil), newPod("old", "n", 100))
	mine, watched := newPod("mine", "", 100), newPod("other", "", 100)
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, pod := range []*corev1.Pod{mine, watched} {
		if err := indexer.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	c.pods = corelisters.NewPodLister(indexer)
	d := &diary{policy: "Diary"}
	server, _ := serveWith(t, c, Options{Binder: &bindings{}}, d)
	c.setPod(watched, false) // pending
	c.setPod(newPod("other", "n", 100), false)
	c.setPod(newPod("other", "n", 100), false) // running
	ask[extenderv1.ExtenderBindingResult](t, server, VerbBind,
		extenderv1.ExtenderBindingArgs{PodName: "mine", PodNamespace: "default", PodUID: "uid-mine", Node: "n"})
	c.setPod(newPod("mine", "n", 100), false)
	want := []string{"Reserve other n", "PostBind other n", "Reserve mine n", "PreBind mine n", "Bind mine n",
		"PostBind mine n"}
	if diff := cmp.Diff(want, d.told()); diff != "" {
		t.Error(diff)
	}
}

func TestPreemptKeepsCandidatesThatFitWithoutTheVictims(t *testing.T) {
	c := filledCache(t, newNode("a", nil), newPod("a1", "a", 2000), newPod("a2", "a", 2000), newNode("b", nil),
		newPod("b1", "b", 2000), newPod("b2", "b", 2000))
	room := filterBy("Room", func(_ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
		if n.Requested().MilliCPU > 2000 {
			return scheduler.Unschedulable("full")
		}
		return nil
	})
	server, _ := serveWith(t, c, Options{}, room)
	meta := func(uids ...string) *extenderv1.MetaVictims {
		v := &extenderv1.MetaVictims{NumPDBViolations: 1}
		for _, uid := range uids {
			v.Pods = append(v.Pods, &extenderv1.MetaPod{UID: uid})
		}
		return v
	}
	want := map[string]*extenderv1.MetaVictims{"a": meta("uid-a1")}
	for name, args := range map[string]extenderv1.ExtenderPreemptionArgs{
		"by UID": {Pod: newPod("p", "", 2000), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"a": meta("uid-a1"),
			"b": meta("uid-unknown"), "gone": meta("x")}},
		"whole": {Pod: newPod("p", "", 2000), NodeNameToVictims: map[string]*extenderv1.Victims{
			"a": {Pods: []*corev1.Pod{newPod("a1", "a", 2000)},
				NumPDBViolations: 1}, "b": {Pods: []*corev1.Pod{newPod("unknown", "b", 1)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask[extenderv1.ExtenderPreemptionResult](t, server, VerbPreempt, args)
			if diff := cmp.Diff(want, got.NodeNameToMetaVictims); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// counted is a policy whose state counts the pods on a node, as affinity does.
type counted struct{ policy }

type countedPods map[string]int

func (c countedPods) Clone() interface{} {
	same := countedPods{}
	for node, n := range c {
		same[node] = n
	}
	return same
}

func (counted) PreFilter(_ context.Context, s scheduler.State,
	_ *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	s.Write("Counted", countedPods{"a": 2, "b": 2})
	return nil, nil
}

func (counted) AddPod(context.Context, scheduler.State, *corev1.Pod, *corev1.Pod,
	scheduler.NodeInfo) *scheduler.Status {
	return nil
}

func (counted) RemovePod(_ context.Context, s scheduler.State, _, _ *corev1.Pod,
	n scheduler.NodeInfo) *scheduler.Status {
	written, _ := s.Read("Counted")
	written.(countedPods)[n.Node().Name]--
	return nil
}

func (counted) Filter(_ context.Context, s scheduler.State, _ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
	written, _ := s.Read("Counted")
	if written.(countedPods)[n.Node().Name] > 1 {
		return scheduler.Unschedulable("two are too many")
	}
	return nil
}

func TestPreemptCallsRemovePodForVictims(t *testing.T) {
	c := filledCache(t, newNode("a", nil), newPod("a1", "a", 1), newPod("a2", "a", 1), newNode("b", nil),
		newPod("b1", "b", 1), newPod("b2", "b", 1))
	server, _ := serveWith(t, c, Options{}, counted{"Counted"})
	got := ask[extenderv1.ExtenderPreemptionResult](t, server, VerbPreempt, extenderv1.ExtenderPreemptionArgs{
		Pod: newPod("p", "", 1), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
			"a": {Pods: []*extenderv1.MetaPod{{UID: "uid-a1"}}}, "b": {Pods: []*extenderv1.MetaPod{}}},
	})
	if diff := cmp.Diff(map[string]*extenderv1.MetaVictims{"a": {Pods: []*extenderv1.MetaPod{{UID: "uid-a1"}}}},
		got.NodeNameToMetaVictims); diff != "" {
		t.Error(diff)
	}
}

// permitting is a policy that delays pods.
type permitting struct{ filterPolicy }

func (permitting) Permit(context.Context, scheduler.State, *corev1.Pod, string) (*scheduler.Status, time.Duration) {
	return scheduler.Wait(), time.Minute
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	handle, err := NewHandle(HandleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"no handle": {Options{}, "no handle"},
		"no policy": {Options{Handle: handle}, "no policy to serve"},
		"no plugin": {Options{Handle: handle, Policies: []Policy{{Name: "x"}}}, `policy "x" has no plugin`},
		"twice": {Options{Handle: handle, Policies: []Policy{{Plugin: labelled()}, {Plugin: labelled()}}},
			"policy Labelled is given twice"},
		"no point": {Options{Handle: handle, Policies: []Policy{{Plugin: policy("x")}}},
			"no extension point that an extender can serve; it has no extension point"},
		"heavy": {Options{Handle: handle, Policies: []Policy{{Plugin: labelled(), Weight: 101}}},
			"weight 101 is not between 1 and 100"},
		"a light weight": {Options{Handle: handle, Policies: []Policy{{Plugin: labelled(), Weight: -1}}}, "weight -1"},
		"permit": {Options{Handle: handle, Policies: []Policy{{Plugin: permitting{labelled().(filterPolicy)}}}},
			"policy Labelled implements Permit, which only a scheduler calls"},
	} {
		_, err := New(c.o)
		var wrong interface{ Invalid() bool }
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &wrong) || !wrong.Invalid() {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// waiting is a policy that is not ready.
type waiting struct{ filterPolicy }

func (waiting) Ready() error { return errors.New("no data yet") }

func TestReadyzReportsWhatIsMissing(t *testing.T) {
	filled := false
	c := filledCache(t, newNode("a", nil))
	c.synced = append(c.synced, func() bool { return filled })
	server, e := serveWith(t, c, Options{}, waiting{labelled().(filterPolicy)})
	get := func(path string) (int, string) {
		t.Helper()
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body := make([]byte, 4096)
		n, _ := response.Body.Read(body)
		return response.StatusCode, string(body[:n])
	}
	if status, body := get("/readyz"); status != 503 || !strings.Contains(body, "[-]cache failed") ||
		!strings.Contains(body, "[-]policy/Labelled failed: no data yet") {
		t.Errorf("got %d %s", status, body)
	}
	filled = true
	if status, body := get("/readyz"); status != 503 || !strings.Contains(body, "[+]cache ok") {
		t.Errorf("got %d %s", status, body)
	}
	for _, path := range []string{"/readyz?exclude=policies", "/readyz?exclude=policy/Labelled", "/healthz"} {
		if status, body := get(path); status != 200 || body != "ok\n" {
			t.Errorf("%s: got %d %s", path, status, body)
		}
	}
	if err := e.Ready(checkPolicies); err != nil {
		t.Error(err)
	}
	post(t, server, VerbFilter, `{"Pod": {}, "NodeNames": ["a", "b"]}`)
	if status, body := get("/metrics"); status != 200 ||
		!strings.Contains(body, `pmk_extender_nodes_total{direction="in",verb="filter"} 2`) ||
		!strings.Contains(body, `pmk_extender_policy_ready{policy="Labelled"} 0`) {
		t.Errorf("got %d %s", status, body)
	}
}
