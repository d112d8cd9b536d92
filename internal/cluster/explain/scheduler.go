package explain

import (
	"fmt"
	"slices"
	"strings"
)

// Scheduler is a scheduler of the cluster.
type Scheduler struct {
	// Name is the schedulerName of pods.
	Name string
	// Where names its objects: Deployment/kube-system/x, Lease/kube-system/x.
	Where string
	// Problem is why it does not schedule. It is empty if no problem is known.
	Problem string
	// Plugins are the plugins of its profile that kube-scheduler does not have. Extenders are the
	// URLs of the extenders that it calls.
	Plugins   []string
	Extenders []string
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

// schedulerState returns why the scheduler of the pod does not schedule, or nil, and whether it
// exists.
func schedulerState(in Input, tried bool) (f *Finding, exists bool) {
	name := schedulerOf(in.Pod)
	s := findScheduler(in.Schedulers, name)
	switch {
	case s == nil && tried, s == nil && reportedBy(in, name):
		return nil, true
	case s == nil:
		names := schedulerNames(in.Schedulers)
		known := "no scheduler was found"
		if len(names) > 0 {
			known = "there are " + strings.Join(names, ", ")
		}
		verdict := "which no one runs"
		if len(in.Unknown) > 0 {
			verdict = "which is not among those that can be read"
		}
		return &Finding{
			Cause: NoScheduler, Text: fmt.Sprintf("the pod names scheduler %s, %s; %s", name, verdict, known),
			Fix: fmt.Sprintf("deploy it (pmk-sched deploy --name %s), or create the pod again with one that exists", name),
		}, false
	case s.Problem != "":
		return &Finding{
			Cause: Down, Text: fmt.Sprintf("scheduler %s does not schedule: %s", name, s.Problem),
			Fix: "pmk-sched status, and pmk-sched logs --name " + name,
		}, true
	}
	return nil, true
}

// reportedBy reports whether a scheduler of that name has written an event about the pod.
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

// extenderOf returns the URL of the configured extender whose URL is a prefix of the URL of a
// request.
func (s *Scheduler) extenderOf(url string) string {
	for _, e := range s.Extenders {
		if strings.HasPrefix(url, e) {
			return e
		}
	}
	return url
}
