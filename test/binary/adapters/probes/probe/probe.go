// Package probe is a portable plugin with every extension point that all releases have. It records
// its calls, and its results depend on the pod's name, so that releases can be compared.
package probe

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name.
const Name = "Probe"

// Probe records its calls.
type Probe struct {
	handle scheduler.Handle
	calls  prometheus.Collector
	greet  string

	mu    sync.Mutex
	notes []string
}

// Arguments of the plugin.
type Arguments struct {
	Greeting string `json:"greeting"`
	Limits   struct {
		CPU int `json:"cpu"`
	} `json:"limits"`
}

// Last is the plugin that New returned last.
var Last *Probe

// New returns the plugin.
func New(ctx context.Context, args scheduler.Arguments, handle scheduler.Handle) (*Probe, error) {
	a := Arguments{Greeting: "default"}
	if err := args.Decode(&a); err != nil {
		return nil, err
	}
	calls, err := scheduler.Register(handle.Metrics(),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "probe_calls_total", Help: "Calls."}))
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	Last = &Probe{handle: handle, calls: calls, greet: fmt.Sprint(a.Greeting, a.Limits.CPU)}
	return Last, nil
}

// Name returns the plugin's name.
func (p *Probe) Name() string { return Name }

func (p *Probe) note(format string, values ...interface{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, "  "+fmt.Sprintf(format, values...))
	p.calls.(prometheus.Counter).Inc()
}

// Notes returns the calls since the last Notes, sorted.
func (p *Probe) Notes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	notes := p.notes
	p.notes = nil
	sort.Strings(notes)
	return notes
}

// Look records the return values of the handle's methods.
func (p *Probe) Look(ctx context.Context) {
	nodes, err := p.handle.Nodes().List()
	_, missing := p.handle.Nodes().Get("nowhere")
	p.note("arguments: %s; nodes: %d %v; node that is not there: error %v", p.greet, len(nodes), err, missing != nil)
	config, err := p.handle.KubeConfig()
	if err != nil {
		p.note("kubeconfig: %v", err)
	} else {
		p.note("kubeconfig: %s %v", config.Host, err)
	}
	p.note("clients: %v %v", p.handle.ClientSet() != nil, p.handle.SharedInformerFactory() != nil)
	logger := p.handle.Logger(ctx)
	logger.Info(5, "probe says five", "key", "value")
	logger.Info(6, "probe says six")
	logger.Error(errors.New("of no concern"), "probe erred")
	p.note("log levels: %v %v", logger.Enabled(5), logger.Enabled(6))
}

type counter struct{ pods int }

func (c *counter) Clone() interface{} { return &counter{c.pods} }

func count(s scheduler.State) *counter {
	value, ok := s.Read(Name + "/count")
	if !ok {
		return nil
	}
	return value.(*counter)
}

// Less sorts by priority, then time.
func (p *Probe) Less(a, b scheduler.QueuedPod) bool {
	p.note("Less %s %d %d", a.Pod.Name, a.Priority, a.Attempts)
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.Timestamp.Before(b.Timestamp)
}

// EventsToRegister returns events of two kinds. A change of a node helps one pod.
func (p *Probe) EventsToRegister() []scheduler.ClusterEvent {
	helps := func(pod *corev1.Pod, before, after interface{}) bool {
		p.note("Helps %s %v %s", pod.Name, before, after.(*corev1.Node).Name)
		return pod.Name == "normal"
	}
	return []scheduler.ClusterEvent{
		{Resource: scheduler.EventNode, Action: scheduler.ActionAdd | scheduler.ActionUpdateNodeLabel, Helps: helps},
		{Resource: scheduler.EventAny, Action: scheduler.ActionAll},
	}
}

// PreFilter's result depends on the pod's name.
func (p *Probe) PreFilter(_ context.Context, s scheduler.State,
	pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	s.Write(Name+"/count", &counter{})
	s.Write(Name+"/gone", 1)
	s.Delete(Name + "/gone")
	_, gone := s.Read(Name + "/gone")
	p.note("PreFilter %s %v", pod.Name, gone)
	switch pod.Name {
	case "skip":
		return nil, scheduler.Skip()
	case "named":
		return &scheduler.PreFilterResult{Nodes: []string{"n1", "n3"}}, nil
	case "rejected":
		return nil, scheduler.Unschedulable("not today")
	case "broken":
		return nil, scheduler.Error(errors.New("it broke"))
	}
	return nil, nil
}

// AddPod counts.
func (p *Probe) AddPod(_ context.Context, s scheduler.State, pod, other *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	count(s).pods++
	p.note("AddPod %s %s %s %d", pod.Name, other.Name, node.Node().Name, count(s).pods)
	return nil
}

// RemovePod counts.
func (p *Probe) RemovePod(_ context.Context, s scheduler.State, pod, other *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	count(s).pods--
	p.note("RemovePod %s %s %s %d", pod.Name, other.Name, node.Node().Name, count(s).pods)
	return nil
}

// Filter rejects n3 and n4.
func (p *Probe) Filter(_ context.Context, s scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	if pod.Name == "panicking" {
		panic("at the disco")
	}
	var pods []string
	for i := 0; i < node.PodCount(); i++ {
		pods = append(pods, node.Pod(i).Name)
	}
	p.note("Filter %s %s pods=%v requested=%v allocatable=%v count=%d", pod.Name, node.Node().Name, pods, node.Requested(),
		node.Allocatable(), count(s).pods)
	switch node.Node().Name {
	case "n3":
		return scheduler.Unschedulable("third", "of four")
	case "n4":
		return scheduler.Unresolvable("fourth")
	case "n5":
		return scheduler.Error(errors.New("fifth"))
	}
	return nil
}

// PostFilter nominates n1.
func (p *Probe) PostFilter(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	rejected scheduler.Rejections) (string, *scheduler.Status) {
	p.note("PostFilter %s n3=%v n4=%v elsewhere=%v", pod.Name, rejected.Status("n3"), rejected.Status("n4"),
		rejected.Status("elsewhere").Code())
	if pod.Name == "skip" {
		return "", scheduler.Unschedulable("no room")
	}
	return "n1", nil
}

// PreScore's result depends on the pod's name.
func (p *Probe) PreScore(_ context.Context, s scheduler.State, pod *corev1.Pod,
	nodes []scheduler.NodeInfo) *scheduler.Status {
	var names []string
	for _, n := range nodes {
		names = append(names, fmt.Sprint(n.Node().Name, ":", n.PodCount()))
	}
	p.note("PreScore %s %s", pod.Name, strings.Join(names, " "))
	if pod.Name == "skip" {
		return scheduler.Skip()
	}
	return nil
}

// Score returns the number of pods on the node × 1000, which NormalizeScore must bring into
// bounds.
func (p *Probe) Score(_ context.Context, s scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	p.note("Score %s %s %v", pod.Name, node.Node().Name, count(s) != nil)
	if pod.Name == "broken" {
		return 0, scheduler.Error(errors.New("no score"))
	}
	return 1000 * int64(node.PodCount()), nil
}

// NormalizeScore prefers nodes with few pods.
func (p *Probe) NormalizeScore(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	for i := range scores {
		p.note("NormalizeScore %s %s %d", pod.Name, scores[i].Name, scores[i].Score)
		scores[i].Score = scheduler.MaxNodeScore - scores[i].Score/1000
	}
	return nil
}

// Reserve records the call.
func (p *Probe) Reserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	p.note("Reserve %s %s", pod.Name, node)
	if pod.Name == "rejected" {
		return scheduler.Unschedulable("taken")
	}
	return nil
}

// Unreserve records the call.
func (p *Probe) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) {
	p.note("Unreserve %s %s", pod.Name, node)
}

// Permit holds pods whose name starts with waiting.
func (p *Probe) Permit(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	node string) (*scheduler.Status, time.Duration) {
	p.note("Permit %s %s", pod.Name, node)
	switch {
	case strings.HasPrefix(pod.Name, "waiting"):
		return scheduler.Wait(), time.Minute
	case pod.Name == "rejected":
		return scheduler.Unresolvable("forbidden"), 0
	}
	return nil, 0
}

// Decide allows or rejects the pods that wait.
func (p *Probe) Decide(allow bool) {
	p.handle.IterateOverWaitingPods(func(w scheduler.WaitingPod) {
		p.note("waiting %s for %v, found %v", w.Pod().Name, w.PendingPlugins(), p.handle.GetWaitingPod(w.Pod().UID) != nil)
		if allow {
			w.Allow(Name)
		} else {
			w.Reject(Name, "turned back")
		}
	})
	p.note("not waiting: %v", p.handle.GetWaitingPod("nobody") == nil)
}

// PreBindPreFlight's result depends on the pod's name.
func (p *Probe) PreBindPreFlight(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	p.note("PreBindPreFlight %s %s", pod.Name, node)
	switch pod.Name {
	case "skip":
		return scheduler.Skip()
	case "broken":
		return scheduler.Error(errors.New("no volume"))
	}
	return nil
}

// PreBind records the call.
func (p *Probe) PreBind(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	p.note("PreBind %s %s", pod.Name, node)
	if pod.Name == "broken" {
		return scheduler.Error(errors.New("no volume"))
	}
	return nil
}

// Bind records the call.
func (p *Probe) Bind(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	p.note("Bind %s %s", pod.Name, node)
	if pod.Name == "skip" {
		return scheduler.Skip()
	}
	return nil
}

// PostBind records the call.
func (p *Probe) PostBind(_ context.Context, s scheduler.State, pod *corev1.Pod, node string) {
	p.note("PostBind %s %s %v", pod.Name, node, count(s) != nil)
}

// Sign returns the pod's name.
func (p *Probe) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	p.note("Sign %s", pod.Name)
	switch pod.Name {
	case "rejected":
		return nil, scheduler.Unschedulable("it depends on other pods")
	case "broken":
		return nil, scheduler.Error(errors.New("no signature"))
	}
	return pod.Name, nil
}
