package page_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func node(name, zone string, cpus int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": *resource.NewQuantity(int64(cpus), resource.DecimalSI), "memory": resource.MustParse("8Gi"),
			"pods": resource.MustParse("110"),
		}},
	}
}

func pod(namespace, name, node, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu),
				"memory": resource.MustParse("1Gi")}},
		}}},
	}
}

// example is a result with everything that a page shows.
func example() *report.Report {
	r := &report.Report{
		Scenario: "replace-all", Release: "v1.24.3", Scheduler: "packer", Notes: []string{"a note"},
		Placements: []report.Placement{{Namespace: "shop", Name: "web-1", From: "a", Node: "b"},
			{Namespace: "shop", Name: "web-2", Node: "b"}},
		Unplaced: []report.Unplaced{{Namespace: "shop", Name: "large",
			Reason: "0/2 nodes are available: 2 Insufficient cpu."}},
		Evicted: []report.Placement{{Namespace: "batch", Name: "low", Node: "b"}},
		Capacity: &report.Capacity{Copies: 3, PodsPerCopy: 2,
			Stop: &report.Unplaced{Namespace: "shop", Name: "web-7", Reason: "Insufficient cpu"}},
		Steps: []*report.Report{{Scenario: "drain"}, {Scenario: "pending"}},
	}
	var before, after report.Usage
	for _, u := range []*report.Usage{&before, &after} {
		u.AddNode(node("a", "z1", 4))
		u.AddNode(node("b", "z2", 8))
		s := &report.ResourceSlice{}
		if err := json.Unmarshal([]byte(`{"spec":{"driver":"gpu.example.com","nodeName":"a","pool":{"name":"a"},
			"devices":[{"name":"gpu-0"},{"name":"gpu-1"}]}}`), s); err != nil {
			panic(err)
		}
		u.Devices.AddSlice(s)
	}
	after.AddNode(node("b-new-1", "z2", 8))
	before.AddPod(pod("shop", "web-1", "a", "2"))
	before.AddPod(pod("batch", "low", "b", "7"))
	after.AddPod(pod("shop", "web-1", "b", "2"))
	after.AddPod(pod("shop", "web-2", "b", "500m"))
	r.Measure(&before, &after)
	r.Price([]report.Price{{Label: corev1.LabelTopologyZone, Value: "z2", Price: 0.25}})
	r.Finish()
	r.Comparison = &report.Comparison{
		Against: "default", Release: "v1.24.3", Scheduler: "default-scheduler", Baseline: r.Summary, Repeated: r.Summary,
		Differences: []report.Difference{{Namespace: "shop", Name: "web-1", Node: "b", Baseline: "a", Repeated: "a"}},
		Noise:       []report.Difference{{Namespace: "shop", Name: "web-2", Node: "b", Baseline: "a", Repeated: "b"}},
	}
	return r
}

func write(t *testing.T, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPage(t *testing.T) {
	got := write(t, example())
	golden.Equal(t, "testdata/report.html", got)
	if again := write(t, example()); again != got {
		t.Error("the page of the same result differs")
	}
}

// A page refers to no other file and to no network, but to the namespace of SVG.
func TestThePageIsSelfContained(t *testing.T) {
	text := strings.ReplaceAll(write(t, example()), "http://www.w3.org/2000/svg", "")
	if found := regexp.MustCompile(`(?i)https?:|//[a-z]+\.|<link[^>]*stylesheet|\ssrc=|@import|url\(`).FindString(
		text); found != "" {
		t.Errorf("the page has %q", found)
	}
}

// tags returns the tags of a page without the values of their attributes. Everything else that
// begins like a tag counts too.
func tags(text string) []string {
	values := regexp.MustCompile(`"[^"]*"`)
	var all []string
	for _, tag := range regexp.MustCompile(`<[a-zA-Z/!][^>]*>?`).FindAllString(text, -1) {
		all = append(all, values.ReplaceAllString(tag, ""))
	}
	return all
}

// Names are input: none of them adds an element, an attribute or a script to the page.
func TestNamesAreEscaped(t *testing.T) {
	const bad = `"'></td></text></script></title><script>alert(1)</script><img src=x onerror=alert(1)><!--`
	named := func(name string) *report.Report {
		r := example()
		r.Scenario, r.Scheduler, r.Release, r.Notes[0] = name, name, name, name
		r.Placements[0] = report.Placement{Namespace: name, Name: name, From: name + "0", Node: name}
		r.Unplaced[0] = report.Unplaced{Namespace: name, Name: name, From: name, Reason: name}
		r.Evicted[0] = report.Placement{Namespace: name, Name: name, Node: name}
		r.Capacity.Stop = &r.Unplaced[0]
		r.Steps[0].Scenario = name
		r.Comparison.Against, r.Comparison.Scheduler, r.Comparison.Release = name, name, name
		r.Comparison.Differences[0] = report.Difference{Namespace: name, Name: name, Node: name, Baseline: name}
		r.Comparison.Noise[0] = r.Comparison.Differences[0]
		var u report.Usage
		n := node(name, name, 4)
		n.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse("1")
		u.AddNode(n)
		u.AddPod(pod(name, name, name, "1"))
		r.Measure(&u, &u)
		return r
	}
	good := tags(write(t, named(strings.Repeat("n", len(bad)))))
	text := write(t, named(bad))
	if diff := cmp.Diff(good, tags(text)); diff != "" || len(good) < 50 {
		t.Errorf("%d tags (-good name +bad name):\n%s", len(good), diff)
	}
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
		t.Error("the page contains the name without escapes")
	}
}

func TestAResultWithoutFiguresHasAPage(t *testing.T) {
	r := &report.Report{Scenario: "pending"}
	r.Finish()
	if text := write(t, r); !strings.Contains(text, "simulate pending") {
		t.Error("the page has no title")
	}
	for _, change := range []func(*report.Summary){
		func(s *report.Summary) { s.Before = nil }, func(s *report.Summary) { s.After = nil },
		func(s *report.Summary) { s.Before.Cost = nil }, func(s *report.Summary) { s.After.Cost = nil },
	} {
		r := example()
		change(&r.Summary)
		if text := write(t, r); strings.Contains(text, "<h2>Cost</h2>") || !strings.Contains(text, "</html>") {
			t.Error("costs are compared that are not known")
		}
	}
}

// full is a file on a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestAPageThatCannotBeWrittenIsAnError(t *testing.T) {
	for name, err := range map[string]error{
		"simulation": page.Write(full{}, example()), "replay": page.WriteReplay(full{}, replayed("gpu")),
		"search": page.WriteTuning(full{}, tuning("trial 1")),
	} {
		if err == nil || err.Error() != "write report: no space" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
