//go:build linux

package plugins

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// script is a model that gets events without an API server.
type script struct {
	*model
	version int64
}

func newScript() *script {
	s := &script{model: newModel(1)}
	for _, name := range []string{"one", "two"} {
		s.machines[name] = &machine{name: name, wake: make(chan struct{}, 1), zones: []int64{4, 4}, written: []int64{4, 4},
			room: sums{corev1.ResourceCPU: 8000, corev1.ResourceMemory: 8 << 30, corev1.ResourcePods: 9, gpuMilli: 2000}}
	}
	s.teams["team"] = &team{namespace: "team", limits: []limit{
		{max: sums{corev1.ResourceCPU: 4000, corev1.ResourcePods: 3, corev1.ResourceMemory: 8 << 30, gpuMilli: 2000}}}}
	return s
}

// pod returns a pod that needs cores, of the class Guaranteed or with milli of a GPU.
func (s *script) pod(namespace, name string, cores, milli int64) *corev1.Pod {
	c := corev1.Container{Name: "main", Resources: same(amountsOf(cores*1000, 1))}
	if milli > 0 {
		delete(c.Resources.Limits, corev1.ResourceCPU)
		addGPU(&c, milli)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{c}},
	}
}

func (s *script) member(group string, i int) *corev1.Pod {
	pod := s.pod("none", fmt.Sprint(group, i), 1, 0)
	pod.Labels = map[string]string{groupLabel: group}
	return pod
}

func (s *script) gang(group string, size int) {
	key := "none/" + group
	s.gangs[key] = &gangRecord{key: key, size: size, everBound: map[types.UID]bool{}}
}

// see handles an event as world.event does.
func (s *script) see(pod *corev1.Pod, gone bool) {
	s.version++
	pod.ResourceVersion = fmt.Sprint(s.version)
	r, bound, ended := s.observe(pod.DeepCopy(), gone)
	switch {
	case ended:
		s.release(r)
	case bound:
		s.checkBound(r)
		s.admit(r, s.machines[pod.Spec.NodeName])
	}
}

func (s *script) create(pods ...*corev1.Pod) {
	for _, pod := range pods {
		s.see(pod, false)
	}
}

func (s *script) bind(pod *corev1.Pod, node, devices string) {
	pod.Spec.NodeName, pod.Annotations = node, map[string]string{gpuIndex: devices}
	s.see(pod, false)
}

func TestTheModelSeesViolations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(s *script)
		want string // "" if the limits hold
	}{
		"within max": {func(s *script) {
			s.createAndBind("team", 2, 2)
		}, ""},
		"beyond max": {func(s *script) {
			s.createAndBind("team", 2, 2, 1)
		}, "pod team/2 was bound beyond max: cpu used 5000, max 4000"},
		"beyond max after a pod has ended": {func(s *script) {
			a := s.createAndBind("team", 2, 2)[0]
			s.see(a, true)
			s.create(s.pod("team", "late", 2, 0))
			s.bind(s.pod("team", "late", 2, 0), "two", "")
		}, ""},
		"a max that the scheduler does not know yet": {func(s *script) {
			s.teams["team"].limits = append(s.teams["team"].limits, limit{max: sums{}})
			s.createAndBind("team", 2)
		}, ""},
		"a max that the scheduler knew before the pod was created": {func(s *script) {
			s.version = 10
			limits := &s.teams["team"].limits
			*limits = append(*limits, limit{max: sums{corev1.ResourcePods: 9}, from: 5})
			(*limits)[0].until = 7
			s.createAndBind("team", 2)
		}, "cpu used 2000, max 0"},
		"the node is full": {func(s *script) {
			pods := []*corev1.Pod{s.pod("none", "a", 5, 100), s.pod("none", "b", 4, 100)}
			s.create(pods...)
			s.bind(pods[0], "one", "0")
			s.bind(pods[1], "one", "1")
		}, "pod none/b was bound to node one, which is full: cpu used 9000 of 8000"},
		"shares of a device": {func(s *script) { s.share("0", "0") }, ""},
		"a device is given twice": {func(s *script) { s.share("0", "0", "0") },
			"a device is given twice, free [-200 1000]"},
		"no device": {func(s *script) { s.share("") }, `has device ""`},
		"a zone for each": {func(s *script) {
			s.createAndBind("none", 3, 3)
		}, ""},
		"no zone has the cores": {func(s *script) {
			s.createAndBind("none", 3, 3, 2)
		}, "the kubelet of node one rejects pod none/2 with [2] cores: free in zones [1 1]"},
		"a gang": {func(s *script) {
			s.half(2, 2)
		}, ""},
		"half a gang": {func(s *script) {
			s.half(2, 1)
		}, "gang none/g of 2: only 1 pods were bound, 0 were deleted"},
		"half a gang, the others were deleted": {func(s *script) {
			s.see(s.half(2, 1)[1], true)
		}, ""},
		"half a gang, the scheduler was restarted": {func(s *script) {
			s.half(2, 1)
			s.restarted = s.version
		}, ""},
	} {
		s := newScript()
		tc.do(s)
		for _, g := range s.gangs {
			g.firstBoundAt = g.firstBoundAt.Add(-2 * lag)
		}
		s.checkGangs()
		if (tc.want == "") != (s.violation == "") || !strings.Contains(s.violation, tc.want) {
			t.Errorf("%s: got %q, want %q", name, s.violation, tc.want)
		}
	}
}

// createAndBind creates and binds pods with cores to the node one.
func (s *script) createAndBind(namespace string, cores ...int64) (pods []*corev1.Pod) {
	for i, n := range cores {
		pods = append(pods, s.pod(namespace, fmt.Sprint(i), n, 0))
	}
	s.create(pods...)
	for _, pod := range pods {
		s.bind(pod, "one", "")
	}
	return pods
}

// share binds pods with 0.4 of a GPU to devices.
func (s *script) share(devices ...string) {
	for i, device := range devices {
		pod := s.pod("none", fmt.Sprint(i), 1, 400)
		s.create(pod)
		s.bind(pod, "one", device)
	}
}

// half creates a gang and binds some of its pods.
func (s *script) half(size, bound int) (pods []*corev1.Pod) {
	s.gang("g", size)
	for i := range size {
		pods = append(pods, s.member("g", i))
	}
	s.create(pods...)
	for _, pod := range pods[:bound] {
		s.bind(pod, "one", "")
	}
	return pods
}

func TestTheModelKnowsWhatCanBePlaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(s *script)
		want string
	}{
		"a pod with room":                 {func(s *script) { s.create(s.pod("none", "a", 4, 0)) }, "pod none/a is pending"},
		"a pod that no zone has room for": {func(s *script) { s.create(s.pod("none", "a", 5, 0)) }, ""},
		"a pod beyond max": {func(s *script) {
			s.createAndBind("team", 2, 2)
			s.create(s.pod("team", "late", 1, 0))
		}, ""},
		"no device has the share": {func(s *script) {
			s.share("0", "1")
			delete(s.machines, "two")
			s.create(s.pod("none", "a", 1, 700))
		}, ""},
		"a gang with room": {func(s *script) { s.half(4, 0) }, "gang none/g is pending and lacks 4"},
		"a gang that lacks pods": {func(s *script) {
			s.half(3, 0)
			s.gangs["none/g"].size = 4
		}, ""},
		"the rest of a gang": {func(s *script) { s.half(3, 1) }, "gang none/g is pending and lacks 2"},
		"a node that is being drained": {func(s *script) {
			s.machines["one"].gone, s.machines["two"].gone = true, true
			s.create(s.pod("none", "a", 1, 0))
		}, ""},
	} {
		s := newScript()
		tc.do(s)
		for _, on := range s.machines {
			copy(on.written, on.zones)
		}
		if got, _ := s.placeable(); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// A pod that was resized counts with the least that the scheduler can have known.
func TestResizesCountWhenTheSchedulerKnowsThem(t *testing.T) {
	t.Parallel()
	s, now := newScript(), time.Now()
	pod := s.pod("none", "a", 1, 0)
	s.create(pod)
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
	s.see(pod, false)
	r := s.pods[pod.UID]
	for since, want := range map[time.Time]int64{now.Add(-time.Minute): 1000, time.Now().Add(time.Second): 3000} {
		if got := r.least(since)[corev1.ResourceCPU]; got != want {
			t.Errorf("since %v: %d, want %d", time.Until(since), got, want)
		}
	}
}
