package collect

import (
	"context"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/versions"
)

// maxConfigurations bounds how many pods with a kube-scheduler are asked for their configuration.
const maxConfigurations = 20

// addProcess keeps a running pod that may be the pod's scheduler: if it was not found yet, a pod
// with a kube-scheduler that pmk-sched did not install, or one that names the scheduler.
func (r *reader) addProcess(pod *corev1.Pod) {
	if slices.ContainsFunc(r.in.Schedulers, func(s explain.Scheduler) bool { return s.Name == r.schedulerName() }) {
		return
	}
	managed := pod.Labels[ownership.LabelManagedBy] == ownership.Manager || pod.Labels[ownership.LabelRelease] != ""
	if !managed && kubeapi.DefaultScheduler(pod) == nil && r.processOf(pod) != nil {
		r.processes = append(r.processes, *pod)
	}
}

// schedulerName returns the pod's scheduler name.
func (r *reader) schedulerName() string {
	if name := r.in.Pod.Spec.SchedulerName; name != "" {
		return name
	}
	return corev1.DefaultSchedulerName
}

// processOf returns a pod's container that runs kube-scheduler, or a program that is named as a
// scheduler and as the pod's scheduler, or nil.
func (r *reader) processOf(pod *corev1.Pod) *corev1.Container {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return kubeapi.RunsScheduler(&c) })
	if at < 0 {
		at = slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			names := strings.Join([]string{pod.Name, c.Name, path.Base(kubeapi.Program(&c))}, " ")
			return slices.Contains(schedulerFlag(&c), r.schedulerName()) ||
				strings.Contains(names, "scheduler") && r.likeness(pod) > 0
		})
	}
	if at < 0 {
		return nil
	}
	return &pod.Spec.Containers[at]
}

// likeness is 1 if a pod's name or namespace begins with the scheduler's name, else 0. It is 0 for
// the default scheduler: "default" is a namespace's name.
func (r *reader) likeness(pod *corev1.Pod) int {
	name := strings.TrimSuffix(r.schedulerName(), "-scheduler")
	if r.schedulerName() == corev1.DefaultSchedulerName {
		return 0
	}
	if strings.HasPrefix(pod.Name, name) || strings.HasPrefix(pod.Namespace, name) {
		return 1
	}
	return 0
}

// schedulerFlag returns the values of --scheduler-name, which Volcano and kube-schedulers at old
// releases have.
func schedulerFlag(c *corev1.Container) []string {
	var names []string
	for _, flag := range versions.ParseFlags(slices.Concat(c.Command, c.Args)) {
		if flag.Name == "scheduler-name" {
			names = append(names, strings.Split(flag.Value, ",")...)
		}
	}
	return names
}

// others adds the schedulers in the kept pods, by a flag or by the configuration that they mount.
// The other schedulers' names remain unknown.
func (r *reader) others(ctx context.Context) error {
	slices.SortStableFunc(r.processes, func(a, b corev1.Pod) int { return r.likeness(&b) - r.likeness(&a) })
	for i := range r.processes {
		pod := &r.processes[i]
		container := r.processOf(pod)
		names := schedulerFlag(container)
		var c configuration
		if len(names) == 0 && i < maxConfigurations && kubeapi.RunsScheduler(container) {
			var err error
			if c, err = r.configuration(ctx, pod.Namespace, &pod.Spec, ""); r.optional(err) != nil {
				return err
			}
			names = c.names
		}
		if len(names) == 0 {
			program := container.Name
			if kubeapi.RunsScheduler(container) {
				program = "kube-scheduler"
			}
			r.in.Processes = append(r.in.Processes,
				explain.Process{Namespace: pod.Namespace, Pod: pod.Name, Program: program})
		}
		for _, name := range names {
			r.addRunning(name, pod, c)
		}
	}
	return nil
}

// addRunning adds a scheduler that runs in a pod. A ready pod replaces one that is not.
func (r *reader) addRunning(name string, pod *corev1.Pod, c configuration) {
	s := explain.Scheduler{Name: name, Where: kubeapi.ObjectName("Pod", pod.Namespace, pod.Name), Extenders: c.extenders}
	if !podstatus.Ready(pod) {
		s.Problem = s.Where + " is not ready"
	}
	at := slices.IndexFunc(r.in.Schedulers, func(known explain.Scheduler) bool { return known.Name == name })
	switch {
	case at < 0:
		r.in.Schedulers = append(r.in.Schedulers, s)
	case strings.HasPrefix(r.in.Schedulers[at].Where, "Pod/") && r.in.Schedulers[at].Problem != "" && s.Problem == "":
		r.in.Schedulers[at] = s
	}
}
