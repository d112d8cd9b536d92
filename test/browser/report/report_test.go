//go:build linux && browser

// Package report opens reports of simulations in Chromium.
package report

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/browser"
)

var screenshots = flag.String("screenshots", "", "keep the screenshots in `DIR`")

// views are the windows of a phone, a laptop and a large screen, each light and dark.
var views = []browser.View{
	{Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true},
	{Width: 1280, Height: 800}, {Width: 1280, Height: 800, Dark: true},
	{Width: 1920, Height: 1080}, {Width: 1920, Height: 1080, Dark: true},
}

func node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
		corev1.LabelTopologyZone: fmt.Sprintf("zone-%c", 'a'+i%3), corev1.LabelInstanceTypeStable: []string{"small",
			"large"}[i%2],
	}}}
	n.Status.Allocatable = corev1.ResourceList{
		"cpu": *resource.NewQuantity(int64(8+8*(i%2)), resource.DecimalSI), "memory": resource.MustParse("32Gi"),
		"pods": resource.MustParse("110"),
	}
	if i%5 == 0 {
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("4")
	}
	return n
}

func nodeName(i int) string { return fmt.Sprintf("worker-%03d.region-1.example.internal", i) }

// simulated is the result of a simulation that packs the pods of nodes onto the first of them.
func simulated(nodes, podsOnEach int) *report.Report {
	r := &report.Report{Scenario: "replace-all", Release: "v1.24.3", Scheduler: "packer",
		Notes: []string{"ResourceClaims are not created from templates"}}
	c := &report.Comparison{Against: "default", Release: "v1.24.3", Scheduler: "default-scheduler"}
	var before, after report.Usage
	for i := range nodes {
		before.AddNode(node(i))
		after.AddNode(node(i))
	}
	for number := range nodes * podsOnEach {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: []string{"shop", "batch", "search"}[number%3],
			Name: fmt.Sprintf("web-6d4cf56db6-%05d", number)}}
		p.Spec.NodeName = nodeName(number % nodes)
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": *resource.NewMilliQuantity(int64(200+100*(number%4)),
				resource.DecimalSI), "memory": *resource.NewQuantity(int64(1+number%3)<<30, resource.BinarySI),
		}}}}
		before.AddPod(p)
		from := p.Spec.NodeName
		p = p.DeepCopy()
		p.Spec.NodeName = nodeName(number / 16)
		after.AddPod(p)
		r.Placements = append(r.Placements,
			report.Placement{Namespace: p.Namespace, Name: p.Name, From: from, Node: p.Spec.NodeName})
		d := report.Difference{Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, Baseline: from, Repeated: from}
		if number%7 == 0 {
			d.Repeated = nodeName((number + 1) % nodes)
			c.Noise = append(c.Noise, d)
		} else {
			c.Differences = append(c.Differences, d)
		}
	}
	r.Unplaced = []report.Unplaced{{Namespace: "batch", Name: "training-0",
		Reason: fmt.Sprintf("0/%d nodes are available: %d Insufficient nvidia.com/gpu.", nodes, nodes)}}
	r.Summary.Nodes = nodes
	r.Measure(&before, &after)
	r.Price([]report.Price{{Label: corev1.LabelInstanceTypeStable, Value: "small", Price: 0.096},
		{Label: corev1.LabelInstanceTypeStable, Value: "large", Price: 0.384}})
	r.Finish()
	c.Baseline, c.Repeated = r.Summary, r.Summary
	r.Comparison = c
	return r
}

// write writes the page of a result.
func write(t testing.TB, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// sizes are results that the page shows with bars, and with heat maps.
var sizes = map[string]struct{ nodes, pods int }{"bars": {40, 8}, "heat": {1000, 8}}

func TestReportIsReadableAtEverySizeInLightAndDark(t *testing.T) {
	b := browser.Start(t)
	for name, size := range sizes {
		file := write(t, simulated(size.nodes, size.pods))
		for _, view := range views {
			t.Run(name+"-"+view.String(), func(t *testing.T) {
				p := b.Open(t, file, view)
				if bad := p.Unreadable(t, "h1, h2, p, b, td, th, summary, figcaption, label, svg text, .card", 50); len(bad) > 0 {
					t.Errorf("low contrast: %v", bad)
				}
				if over := p.TooWide(t, ".scroll"); len(over) > 0 {
					t.Errorf("wider than the window: %v", over)
				}
				isDark := p.Eval(t, `getComputedStyle(document.body).backgroundColor`) != "rgb(255, 255, 255)"
				if isDark != view.Dark {
					t.Errorf("dark: %t", isDark)
				}
				for _, part := range []string{"top", "nodes"} {
					if part == "nodes" {
						p.Eval(t, `document.querySelector(".tools").scrollIntoView()`)
					}
					shot := p.Screenshot(t)
					checkPicture(t, shot, view)
					keep(t, fmt.Sprintf("%s-%s-%s", name, view, part), shot)
				}
				if len(p.Problems) > 0 {
					t.Errorf("problems: %v", p.Problems)
				}
			})
		}
	}
}

// keep writes a screenshot to the directory of -screenshots, if there is one.
func keep(t *testing.T, name string, shot []byte) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), shot, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkPicture checks that a screenshot is as large as the window and not empty.
func checkPicture(t *testing.T, shot []byte, view browser.View) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size != image.Pt(view.Width, view.Height) {
		t.Errorf("the screenshot has %v", size)
	}
	colors := map[any]bool{}
	for y := range view.Height {
		for x := range view.Width {
			colors[picture.At(x, y)] = true
		}
	}
	if len(colors) < 20 {
		t.Errorf("the screenshot has %d colors", len(colors))
	}
}

// center returns the center of the first element of a selector, in view.
func center(t *testing.T, p *browser.Page, selector string) (x, y float64) {
	t.Helper()
	box := p.Eval(t, fmt.Sprintf(`(function () {
	  var e = document.querySelector(%q);
	  e.scrollIntoView({block: "center"});
	  var box = e.getBoundingClientRect();
	  return [box.x + box.width / 2, box.y + box.height / 2];
	}())`, selector)).([]any)
	return box[0].(float64), box[1].(float64)
}

func TestTooltipsNameTheNodeAndItsPods(t *testing.T) {
	b := browser.Start(t)
	for name, tc := range map[string]struct {
		element string
		want    []string
	}{
		"bars": {`svg.bars[data-side="0"] rect.used`, []string{nodeName(0), "-00", "cpu 0.", "memory "}},
		"heat": {`svg.heat[data-side="0"] rect.cell`,
			[]string{nodeName(0), "8 pods", "batch/web-6d4cf56db6-01000", "shop/web-6d4cf56db6-00000"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.Open(t, write(t, simulated(sizes[name].nodes, sizes[name].pods)), views[2])
			x, y := center(t, p, tc.element)
			p.Move(t, x, y)
			text := p.Eval(t, `var tip = document.getElementById("tip"); tip.style.display == "block" ? tip.textContent : ""`).(string)
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("the tooltip lacks %q: %q", want, text)
				}
			}
			if inside := p.Eval(t,
				`var box = document.getElementById("tip").getBoundingClientRect(); box.x >= 0 && box.y >= 0 && box.right <= innerWidth && box.bottom <= innerHeight`); inside != true {
				t.Error("the tooltip is partly outside the window")
			}
			keep(t, name+"-tooltip", p.Screenshot(t))
			p.Move(t, 1, 1)
			if shown := p.Eval(t, `document.getElementById("tip").style.display`); shown != "none" {
				t.Errorf("the tooltip is %v after the mouse has left", shown)
			}
			if len(p.Problems) > 0 {
				t.Errorf("problems: %v", p.Problems)
			}
		})
	}
}

// rows is a script that returns the number of rows of the list of moved pods that are shown, and
// the first of them.
const rows = `(function () {
  var shown = Array.from(document.querySelectorAll("#moved tbody tr")).filter(function (row) { return row.offsetParent !== null; });
  return [shown.length, shown.length ? shown[0].textContent : "", document.getElementById("found").textContent, document.querySelectorAll("svg[data-side='1'] .mark").length];
}())`

func TestSearchAndNamespaceFilterSelectPods(t *testing.T) {
	p := browser.Start(t).Open(t, write(t, simulated(sizes["bars"].nodes, sizes["bars"].pods)), views[2])
	all := p.Eval(t, rows).([]any)
	if all[0].(float64) < 200 || all[2] != "" || all[3] != 0.0 {
		t.Fatalf("without a filter: %v", all)
	}
	x, y := center(t, p, "#search")
	p.Click(t, x, y)
	p.Type(t, "b6-0031")
	found := p.Eval(t, rows).([]any)
	if found[0] != 10.0 || !strings.Contains(found[1].(string), "b6-0031") || found[2] != "10 of 320 pods" ||
		found[3].(float64) < 10 {
		t.Errorf("search: %v", found)
	}
	p.Eval(t,
		`var s = document.getElementById("namespace"); s.value = "shop"; s.dispatchEvent(new Event("change", {bubbles: true}))`)
	found = p.Eval(t, rows).([]any)
	if found[0] != 3.0 || !strings.HasPrefix(found[1].(string), "shop/") || found[2] != "3 of 320 pods" {
		t.Errorf("search in a namespace: %v", found)
	}
	p.Eval(t, `var s = document.getElementById("search"); s.value = ""; s.dispatchEvent(new Event("input"))`)
	found = p.Eval(t, rows).([]any)
	if found[2] != "107 of 320 pods" || !strings.HasPrefix(found[1].(string), "shop/") || found[0].(float64) > 107 {
		t.Errorf("namespace: %v", found)
	}
	center(t, p, "svg.bars")
	keep(t, "bars-namespace", p.Screenshot(t))
	if len(p.Problems) > 0 {
		t.Errorf("problems: %v", p.Problems)
	}
}
