package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Scheduler is a scheduler in the cluster.
type Scheduler struct {
	// Name is the schedulerName in pods.
	Name string
	// Where names its objects: Deployment/kube-system/x, Lease/kube-system/x, Pod/kube-system/x.
	Where string
	// Problem is the reason why it does not schedule. It is empty if no problem is known.
	Problem string
	// Plugins are the plugins in its profile that kube-scheduler does not have. Extenders are the
	// extender URLs that it calls.
	Plugins   []string
	Extenders []string
}

// Process is a running container that may be a scheduler, but whose name as a scheduler is unknown.
type Process struct {
	// Pod is the namespace and the name of its pod, Program the program or the container.
	Namespace, Pod, Program string
}

func (p Process) String() string {
	return fmt.Sprintf("Pod/%s/%s runs %s", p.Namespace, p.Pod, p.Program)
}

func findScheduler(all []Scheduler, name string) *Scheduler {
	at := slices.IndexFunc(all, func(s Scheduler) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &all[at]
}

func schedulerNames(all []Scheduler) []string {
	names := []string{}
	for _, s := range all {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// schedulerState returns why the pod's scheduler does not schedule, or nil, and whether it exists.
func schedulerState(in Input, tried bool) (f *Finding, exists bool) {
	name := schedulerOf(in.Pod)
	s := findScheduler(in.Schedulers, name)
	switch {
	case s == nil && tried, s == nil && reportedBy(in, name):
		return nil, true
	case s == nil:
		return unknownScheduler(in, name), false
	case s.Problem != "":
		return &Finding{
			Cause: Down, Text: fmt.Sprintf("scheduler %s does not schedule: %s", name, s.Problem),
			Fix: "pmk-sched status, and " + s.logs(),
		}, true
	}
	return nil, true
}

// unknownScheduler describes the failed search for a scheduler. Finding nothing is no proof: a
// scheduler may run without a lease, outside the cluster, or in a different process.
func unknownScheduler(in Input, name string) *Finding {
	text := fmt.Sprintf("the pod names scheduler %s, which was not found: no Deployment of pmk-sched, no Lease and no "+
		"readable configuration of a kube-scheduler has this name", name)
	fix := "create the pod again with a scheduler that exists"
	if name == corev1.DefaultSchedulerName {
		text = "the default scheduler was not found: no static pod runs it, and it has no Lease kube-scheduler; it may run in " +
			"another process or outside of the cluster"
		fix = "`pmk-sched detect` prints how the default scheduler runs: see the log of that process"
	} else if deployable(name) && len(in.Processes) == 0 {
		fix = fmt.Sprintf("deploy it (pmk-sched deploy --name %s), or %s", name, fix)
	}
	if len(in.Unknown) > 0 {
		text += ", among the objects that can be read"
	}
	if names := schedulerNames(in.Schedulers); len(names) > 0 {
		text += "; there are " + strings.Join(names, ", ")
	}
	var processes []string
	for _, p := range in.Processes {
		processes = append(processes, p.String())
	}
	if len(processes) > 0 {
		text += "; one of these may be it: " + list(processes)
		fix = "see the log of the process: " + podLogs(in.Processes[0].Namespace, in.Processes[0].Pod) + "; or " + fix
	}
	return &Finding{Cause: NoScheduler, Text: text, Fix: fix}
}

// deployable reports whether pmk-sched deploys a scheduler with this name.
func deployable(name string) bool {
	return !slices.Contains(ownership.ClusterNames(), name) && len(validation.IsDNS1123Label(name)) == 0
}

// logs returns the command that prints the scheduler's log.
func (s *Scheduler) logs() string {
	kind, at, _ := strings.Cut(s.Where, "/")
	namespace, pod, _ := strings.Cut(at, "/")
	switch {
	case kind == "Pod":
		return podLogs(namespace, pod)
	case s.Name == corev1.DefaultSchedulerName:
		return "the log of the control plane's kube-scheduler"
	}
	return "pmk-sched logs --name " + s.Name
}

func podLogs(namespace, pod string) string { return "kubectl logs -n " + namespace + " " + pod }

// reportedBy reports whether a scheduler with that name has written an event about the pod.
func reportedBy(in Input, name string) bool {
	for i := range in.Events {
		if e := &in.Events[i]; e.ReportingController == name || e.Source.Component == name {
			return true
		}
	}
	return false
}

// suspects returns the plugin or extender that may have given a reason: the plugin that the reason
// names, or all candidates.
func (s *Scheduler) suspects(text string) string {
	var all []string
	for _, p := range s.Plugins {
		if strings.Contains(text, p) {
			return p
		}
		all = append(all, p)
	}
	for _, url := range s.Extenders {
		all = append(all, "extender "+url)
	}
	return strings.Join(all, " or ")
}

// extenderOf returns the URL of the configured extender whose URL is a prefix of the request's URL.
func (s *Scheduler) extenderOf(url string) string {
	for _, e := range s.Extenders {
		if strings.HasPrefix(url, e) {
			return e
		}
	}
	return url
}
