package extender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// manyNodes returns nodes as large clusters have them, with their labels, conditions and images.
func manyNodes(n int) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range n {
		name := fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i/65536, i/256%256, i%256)
		object := newNode(name, map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("eu-central-1%c",
				'a'+i%3), corev1.LabelTopologyRegion: "eu-central-1",
			corev1.LabelInstanceTypeStable: "m5.xlarge", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			"score": fmt.Sprint(i % 101),
		})
		object.ResourceVersion = fmt.Sprint(1000 + i)
		for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
			corev1.NodePIDPressure} {
			object.Status.Conditions = append(object.Status.Conditions, corev1.NodeCondition{Type: kind,
				Status: corev1.ConditionFalse, Reason: "KubeletHasNoPressure", Message: "kubelet has nothing to complain of"})
		}
		for j := range 25 {
			object.Status.Images = append(object.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 27, Names: []string{
				fmt.Sprintf("localhost/platform/component-%d@sha256:%064d", j,
					j), fmt.Sprintf("localhost/platform/component-%d:v1.2.%d", j, j)}})
		}
		nodes = append(nodes, object)
	}
	return nodes
}

// ofThousands returns the policies of a benchmark: one that filters and scores by requests, as a
// plugin would.
func ofThousands() []scheduler.Plugin {
	full := scheduler.Unschedulable("has no CPU left")
	return []scheduler.Plugin{
		filterBy("Room", func(_ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
			if n.Requested().MilliCPU >= n.Allocatable().MilliCPU {
				return full
			}
			return nil
		}),
		scoreBy("Free", func(n scheduler.NodeInfo) (int64, *scheduler.Status) {
			return 100 - 100*n.Requested().MilliCPU/n.Allocatable().MilliCPU, nil
		}),
	}
}

// BenchmarkCall measures one call of a scheduler with 5,000 nodes with ten pods each, over HTTP on
// loopback. In addition to ns/op it reports p50 and p99 in milliseconds, and the bytes in each
// direction.
func BenchmarkCall(b *testing.B) {
	empty := heapMiB()
	nodes, c := filledWith(b, 5000)
	held := heapMiB() - empty
	server, _ := serveWith(b, c, Options{}, ofThousands()...)
	pod := newPod("p", "", 100)
	var all []string
	list := &corev1.NodeList{}
	for _, n := range nodes {
		all = append(all, n.Name)
		list.Items = append(list.Items, *n)
	}
	for _, form := range []struct {
		name string
		args extenderv1.ExtenderArgs
	}{
		{"NodeNames", extenderv1.ExtenderArgs{Pod: pod, NodeNames: &all}},
		{"Nodes", extenderv1.ExtenderArgs{Pod: pod, Nodes: list}},
	} {
		for _, verb := range []string{VerbFilter, VerbPrioritize} {
			b.Run(form.name+"/"+verb, func(b *testing.B) {
				benchmarkCall(b, server.URL+"/"+verb, form.args)
				b.ReportMetric(held, "cache-MiB")
			})
		}
	}
}

// filledWith returns a cache of n nodes, of which one in fifty is full, and its nodes.
func filledWith(b *testing.B, n int) ([]*corev1.Node, *Cache) {
	c, compactor := filledCache(b), newCompactor()
	nodes := manyNodes(n)
	for i, object := range nodes {
		if _, err := compactor.compact(object); err != nil {
			b.Fatal(err)
		}
		c.setNode(object)
		pods := 10
		if i%50 == 0 {
			pods = 40
		}
		for j := range pods {
			c.setPod(newPod(fmt.Sprintf("pod-%d-%d", i, j), object.Name, 100), true)
		}
	}
	return nodes, c
}

// BenchmarkRejected measures the largest answer: a reason for each of 5,000 nodes.
func BenchmarkRejected(b *testing.B) {
	var objects []interface{}
	var all []string
	for _, n := range manyNodes(5000) {
		objects, all = append(objects, n), append(all, n.Name)
	}
	no := scheduler.Unresolvable("every node is blocked by BlockAll")
	server, _ := serveWith(b, filledCache(b, objects...), Options{},
		filterBy("No", func(*corev1.Pod, scheduler.NodeInfo) *scheduler.Status { return no }))
	benchmarkCall(b, server.URL+"/"+VerbFilter, extenderv1.ExtenderArgs{Pod: newPod("p", "", 100), NodeNames: &all})
}

func benchmarkCall(b *testing.B, url string, args extenderv1.ExtenderArgs) {
	request, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	received := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		response, err := http.Post(url, "application/json", bytes.NewReader(request))
		if err != nil {
			b.Fatal(err)
		}
		received, err = io.Copy(io.Discard, response.Body)
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(err, response.Status)
		}
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	at := func(percent int) float64 {
		return float64(times[(len(times)-1)*percent/100]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
	b.ReportMetric(float64(len(request)), "B-in")
	b.ReportMetric(float64(received), "B-out")
}

func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
