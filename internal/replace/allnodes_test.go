package replace

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/profiles"
)

func TestARunThroughAllNodesStopsAtTheFirstFailure(t *testing.T) {
	plan := []NodePlan{{Node: "a"}, {Node: "b"}, {Node: "c"}}
	for name, c := range map[string]struct {
		// fails is the node whose step fails.
		fails, step string
		// done are the nodes of the results, calls the calls of do and confirm.
		done  []string
		calls []string
	}{
		"none": {done: []string{"a", "b", "c"},
			calls: []string{"do a", "confirm a", "do b", "confirm b", "do c", "confirm c, the last"}},
		"the first":  {fails: "a", step: "do", calls: []string{"do a"}},
		"the second": {fails: "b", step: "do", done: []string{"a"}, calls: []string{"do a", "confirm a", "do b"}},
		"no pod is scheduled": {fails: "b", step: "confirm", done: []string{"a", "b"},
			calls: []string{"do a", "confirm a", "do b", "confirm b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			call := func(step, node, more string) error {
				calls = append(calls, step+" "+node+more)
				if step == c.step && node == c.fails {
					return errors.New("it failed")
				}
				return nil
			}
			results, err := eachNode(plan, func(entry NodePlan) (*NodeResult, error) {
				return &NodeResult{Node: entry.Node}, call("do", entry.Node, "")
			},
				func(result *NodeResult, last bool) error {
					if last {
						return call("confirm", result.Node, ", the last")
					}
					return call("confirm", result.Node, "")
				})
			if (err != nil) != (c.fails != "") {
				t.Errorf("got %v", err)
			}
			if err != nil && !slices.ContainsFunc(problem.Hints(err),
				func(h string) bool { return strings.Contains(h, "to resume") }) {
				t.Errorf("hints %q", problem.Hints(err))
			}
			var done []string
			for _, r := range results {
				done = append(done, r.Node)
			}
			if diff := cmp.Diff(c.done, done); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// options has a value for every field that a request can have.
func options() Options {
	yes := true
	o := asks("registry.example.com/kube-scheduler:{release}", "")
	o.Request.Spec.Configuration = v1alpha1.Configuration{File: "c.yaml", Inline: "kind: KubeSchedulerConfiguration\n"}
	o.Request.Spec.Extenders = []v1alpha1.Extender{{Name: "e", URLPrefix: "https://e", FilterVerb: "filter",
		Ignorable: &yes, HTTPTimeout: v1alpha1.Duration(time.Second), TLSConfig: &v1alpha1.TLSConfig{CAData: []byte("PEM")}}}
	o.Plugins = []profiles.Plugin{{Name: "Timestamp", Points: []string{"preBind"}, Enable: []string{}},
		{Name: "Quiet", Points: []string{"filter"}}}
	o.Packages = map[string]string{"Timestamp": "github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp"}
	o.Timeout, o.StableFor = 2*time.Minute, time.Second
	return o
}

func TestTaskOfEachNodeHasTheWholeRequest(t *testing.T) {
	layout, _ := inspect.LayoutNamed("kubeadm")
	n := &Node{s: &session.Session{}, o: options(), podImage: "localhost/pmk-sched:v1"}
	r := &nodesRun{
		Node: n, layout: layout, goal: Goal{Image: "registry.example.com/kube-scheduler:v1.24.3"},
		request: nodeRequest{Version: "v1", Options: n.o},
	}
	task, err := r.task(NodePlan{Node: "cp-2", Image: "old", Programs: []string{"kube-scheduler"}})
	if err != nil {
		t.Fatal(err)
	}
	if task.Node != "cp-2" || task.Image != "localhost/pmk-sched:v1" ||
		task.Scheduler != "registry.example.com/kube-scheduler:v1.24.3" || task.Kubeconfig != "/etc/kubernetes/admin.conf" {
		t.Errorf("task %+v", task)
	}
	if task.Timeout != nodeRunTime+2*time.Minute+time.Second {
		t.Errorf("timeout %s", task.Timeout)
	}
	if diff := cmp.Diff([][]string{{"/etc/kubernetes"}, {"/var/lib/pmk-sched"}},
		[][]string{task.Directories, task.Created}); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
	got, err := decodeRequest(task.Request, "v1")
	if err != nil {
		t.Fatal(err)
	}
	want := r.request
	want.Options.Node, want.Scheduler, want.Programs = "cp-2", task.Scheduler, task.Programs
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if r.request.Options.Node != "" {
		t.Error("the request of one node is that of all")
	}

	r.goal.Image = "" // the image of each node stays
	if task, err = r.task(NodePlan{Node: "cp-3", Image: "old"}); err != nil || task.Scheduler != "old" {
		t.Errorf("image %s, %v", task.Scheduler, err)
	}
	r.request = nodeRequest{Version: "v1", Restore: true, Force: true}
	if task, err = r.task(NodePlan{Node: "cp-3", Image: "old"}); err != nil || task.Scheduler != "" {
		t.Errorf("restore with the scheduler's image %s, %v", task.Scheduler, err)
	}
}

func TestRequestOfAnotherProgramIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		invalid    bool
	}{
		"another version": {text: `{"version": "v2", "new": 1}`,
			want: "the image has pmk-sched v1, and the request is from pmk-sched v2", invalid: true},
		"an unknown field":  {text: `{"version": "v1", "new": 1}`, want: "unknown field"},
		"not a request":     {text: `x`, want: "read the request"},
		"an unknown option": {text: `{"version": "v1", "options": {"Rules": {}}}`, want: "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeRequest([]byte(c.text), "v1")
			if err == nil || !strings.Contains(err.Error(), c.want) || problem.IsInvalid(err) != c.invalid {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The pod has the program of one image, and the manifest on the node may have changed since the API
// server was read.
func TestProgramOfAnotherImageOrCommandIsNotUsed(t *testing.T) {
	r := &nodeRequest{Scheduler: "localhost/a:v1", Programs: []string{"kube-scheduler"}}
	if err := r.expect("localhost/a:v1"); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		image   string
		command []string
		want    string
	}{
		{"localhost/b:v1", r.Programs, "the manifest names image localhost/b:v1"},
		{r.Scheduler, []string{"/go-runner", "kube-scheduler"}, `the manifest runs ["/go-runner" "kube-scheduler"]`},
	} {
		if _, err := r.binary(t.Context(), c.image, c.command, t.TempDir()); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %v", c.image, c.command, err)
		}
	}
}

func TestResultOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		restored bool
		outcome  any
		want     NodeResult
	}{
		"replaced": {outcome: Outcome{Node: "a", Image: "i", Backup: "/b", Changed: true},
			want: NodeResult{Node: "a", Changed: true, Image: "i", Backup: "/b"}},
		"done before": {outcome: Outcome{Node: "a", Image: "i"}, want: NodeResult{Node: "a", Image: "i"}},
		"restored": {restored: true, outcome: RestoreOutcome{Node: "a", Backup: "/b", Manifest: ManifestRestored},
			want: NodeResult{Node: "a", Changed: true, Manifest: ManifestRestored, Backup: "/b"}},
		"not replaced": {restored: true, outcome: RestoreOutcome{}, want: NodeResult{Node: "a", Manifest: ManifestUnchanged}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(c.outcome)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeResult("a", c.restored, text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
