package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Observe schedules one pod on the API server and observes the scheduler's decision about each
// node. The log contains the scores. No release logs which plugins and extenders refuse a node:
// Observe observes that with a profile for each plugin that filters, which gets the pod first, and
// with recorders around the extenders. If node is not empty, it finds changes that would make the
// pod fit there. It refuses a pod that names another scheduler, unless a scheduler is described.
func Observe(
	ctx context.Context, server *simulate.Server, o simulate.Options, namespace, pod, node string, described bool,
) (in *Input, err error) {
	o.Scenario = scenario.One(namespace, pod)
	ob := &observer{namespace: namespace, pod: pod, node: node, described: described}
	o.Observer = ob
	if ob.recorder, err = kubescheduler.StartRecorder(profiles.IsProbe); err != nil {
		return nil, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err = errors.Join(err, ob.recorder.Close(closing))
	}()
	result, err := server.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return ob.input(result)
}

const (
	// closeTime is the time for calls by a scheduler that has ended.
	closeTime = 5 * time.Second
	// probeInterval is the interval at which a probe is read.
	probeInterval = 20 * time.Millisecond
)

// observer observes the scheduler's decision about one pod.
type observer struct {
	simulate.Unobserved
	run            *simulate.Run
	namespace, pod string
	node           string
	recorder       *kubescheduler.Recorder
	probed         *profiles.Probed
	profile        string // the scheduler name of the pod
	// described is [Request.Described].
	described bool
	notes     []string
	nodes     []string
	filters   []Filter
	fixes     []Fix
}

// Configure changes the scheduler's configuration, so that it can be observed.
func (ob *observer) Configure(ctx context.Context, r *simulate.Run, c *kubescheduler.Configuration) error {
	ob.run = r
	if len(r.Waiting) == 0 && len(r.Report.Unplaced) > 0 {
		return problem.Invalidf("", "pod %s/%s is %s", ob.namespace, ob.pod, r.Report.Unplaced[0].Reason)
	}
	if len(r.Waiting) != 1 {
		return problem.Invalidf("`kubectl get pods -A` lists pods; one that has ended or is being deleted is not scheduled",
			"the snapshot has no pod %s in namespace %s to schedule", ob.pod, ob.namespace)
	}
	pod, err := snapshot.Decode(r.Waiting[0].Pod)
	if err != nil {
		return fmt.Errorf("read pod %s: %w", r.Waiting[0].Key, err)
	}
	spec, _ := pod["spec"].(map[string]any)
	named := spec["schedulerName"]
	if scenario.UseProfile(pod, c.Profiles, r.Options.Scheduler.Request.Name) {
		if !ob.described {
			return problem.Invalidf(fmt.Sprintf("name it with --name %s, or describe it with -f", named),
				"pod %s names scheduler %s, which is not described", r.Waiting[0].Key, named)
		}
		ob.notes = append(ob.notes, fmt.Sprintf("the pod names scheduler %s", named))
	}
	var typed corev1.Pod
	if err := snapshot.Convert(pod, &typed); err != nil {
		return err
	}
	if gates := typed.Spec.SchedulingGates; len(gates) > 0 {
		return problem.Invalidf("the controller that set it has to remove it",
			"pod %s has the scheduling gate %s: no scheduler examines it", r.Waiting[0].Key, gates[0].Name)
	}
	ob.profile = cmp.Or(typed.Spec.SchedulerName, corev1.DefaultSchedulerName)
	defaulted, err := r.Complete(ctx, c)
	if err != nil {
		return err
	}
	ob.probed, err = profiles.Probe(profiles.ProbeRequest{
		Configuration: c.YAML, Defaulted: defaulted, Release: r.Options.Scheduler.Release, Profile: ob.profile,
		Recorder: ob.recorder.URL, Verb: kubescheduler.RecorderVerb,
	})
	if err != nil {
		return err
	}
	ob.nodes = r.Nodes()
	c.YAML = ob.probed.YAML
	c.Services = append(c.Services, ob.recorder.Host())
	// Level 10 everywhere would log every answer from the API server.
	c.Args = append(c.Args, "--vmodule=schedule_one=10,generic_scheduler=10,scheduler=10")
	return nil
}

// Ready has each plugin that filters decide alone. The pods are named like the pod to explain, one
// after the other, so that plugins that count pods see the same as afterwards.
func (ob *observer) Ready(ctx context.Context, r *simulate.Run) error {
	for _, plugin := range ob.probed.Plugins {
		condition, err := ob.probeOne(ctx, r, plugin.Profile)
		if err != nil {
			return fmt.Errorf("examine the nodes with plugin %s: %w", plugin.Name, err)
		}
		f := Filter{Plugin: plugin.Name}
		f.Passed, _ = ob.recorder.Passed(plugin.Profile, 0)
		reasons, fit := explain.Reasons(condition.Message)
		switch {
		case fit:
			f.Reasons = slices.DeleteFunc(reasons,
				func(reason string) bool { return strings.HasPrefix(reason, kubescheduler.RecorderRefusal) })
		case condition.Reason == corev1.PodReasonUnschedulable:
			f.Reasons = []string{condition.Message}
		default:
			f.Failed = condition.Message
		}
		ob.filters = append(ob.filters, f)
	}
	return nil
}

// awaitRefusal waits until the scheduler has written why it does not place the pod.
func (ob *observer) awaitRefusal(ctx context.Context, r *simulate.Run) (*corev1.PodCondition, error) {
	for {
		pod, err := r.Pod(ctx, ob.namespace, ob.pod)
		if err != nil {
			return nil, err
		}
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return c, nil
			}
		}
		if err := r.Scheduler.Ended(); err != nil {
			return nil, err
		}
		if err := clock.Sleep(ctx, probeInterval); err != nil {
			return nil, problem.Errorf("allow more with --timeout", "wait for the scheduler: %w", err)
		}
	}
}

// Scheduled finds changes that would make the pod fit on the node, from the simulation's objects.
func (ob *observer) Scheduled(ctx context.Context, r *simulate.Run) error {
	if ob.node == "" {
		return nil
	}
	in, err := collect.Pod(ctx, r.Config(), ob.namespace, ob.pod, r.Session.Log)
	if err != nil || in.Pod == nil {
		return err
	}
	for _, f := range explain.Node(*in, ob.node) {
		ob.fixes = append(ob.fixes, Fix{By: f.By, Text: f.Text, Fix: f.Fix})
	}
	return nil
}

// input combines the observations with the run's result.
func (ob *observer) input(result *report.Report) (*Input, error) {
	in := &Input{
		Namespace: ob.namespace, Pod: ob.pod, Release: result.Release, Scheduler: ob.profile,
		Nodes: ob.nodes, Filters: ob.filters, Weights: ob.probed.Weights, ExtenderWeights: map[string]int64{},
		Notes: slices.Concat(ob.notes, ob.run.Scheduler.Notes), Fixes: ob.fixes,
	}
	log, err := ob.run.Scheduler.OpenLog()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if in.Scores, err = ParseLog(log, ob.namespace, ob.pod); err != nil {
		return nil, err
	}
	for _, p := range result.Placements {
		in.Selected, in.From, in.Examined = p.Node, p.From, true
	}
	for _, u := range result.Unplaced {
		in.Message, in.From = u.Reason, u.From
		_, in.Examined = explain.Reasons(u.Reason)
	}
	for _, e := range result.Evicted {
		in.Evicted = append(in.Evicted, e.Namespace+"/"+e.Name)
	}
	in.Passed, _ = ob.recorder.Passed(ob.profile, 0)
	stage, called := 0, true
	for _, e := range ob.probed.Extenders {
		if e.Weight > 0 {
			in.ExtenderWeights[e.Name] = e.Weight
		}
		if e.Filters && called {
			stage++
			var passed []string
			passed, called = ob.recorder.Passed(ob.profile, stage)
			in.Stages = append(in.Stages, Stage{Extender: e.Name, Passed: passed})
		}
	}
	return in, nil
}
