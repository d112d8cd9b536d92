package inspect

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// largeCluster has three control-plane nodes, each with a full set of pods.
func largeCluster(nodes int) *apiServer {
	s := pmkMaster()
	s.nodes = nil
	for i := range nodes {
		n := node(fmt.Sprintf("node-%05d", i))
		for j := range 50 {
			n.Status.Images = append(n.Status.Images,
				corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/some/image-%d:v1.0.%d", j, i)},
					SizeBytes: 1 << 20})
		}
		if i < 3 {
			labelled("node-role.kubernetes.io/control-plane", "")(&n)
			for j := range 100 {
				s.pods = append(s.pods, staticPod(fmt.Sprint("pod-", j), n.Name,
					container("main", "localhost/main", "main", fmt.Sprint("--port=", 20000+j))))
			}
		}
		s.nodes = append(s.nodes, n)
	}
	return s
}

// BenchmarkDetect5000Nodes measures one inspection of a cluster of 5,000 nodes, the test's own API
// server included.
func BenchmarkDetect5000Nodes(b *testing.B) {
	cfg := largeCluster(5000).start(b)
	o := Options{Now: func() time.Time { return testNow }}
	b.ReportAllocs()
	before := cpuTime(b)
	b.ResetTimer()
	for b.Loop() {
		if _, err := Detect(context.Background(), cfg, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpuTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestDetectAllocatesLittleOnALargeCluster(t *testing.T) {
	s := largeCluster(5000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	detect(t, s)
	runtime.ReadMemStats(&after)
	// All that was ever allocated, by the test's API server too: the client
	// cannot have held more at any time.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 100<<20 {
		t.Errorf("%d MB were allocated", allocated>>20)
	}
}
