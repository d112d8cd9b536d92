// Package replay runs a scheduler on a cluster's recording in virtual time: the lives of pods, the
// order of recorded changes and pod ends, and the cluster's use over time.
package replay

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

const (
	// defaultGroups is the default limit for a recording's groups, and shortestStep a group's smallest
	// length.
	defaultGroups = 1440
	shortestStep  = time.Second
)

// Request describes how to replay a recording.
type Request struct {
	Scheduler pack.Scheduler
	// File is the recording's path.
	File string
	// Step is the virtual time that is applied together. Defaults to a minute for a day, and
	// accordingly.
	Step    time.Duration
	Timeout time.Duration
	Prices  []report.Price
}

// Run runs a scheduler on a recording in virtual time. No cluster is used.
func Run(ctx context.Context, s *session.Session, r Request) (result *Result, err error) {
	recording, err := capture.OpenRecording(r.File)
	if err != nil {
		return nil, err
	}
	p, err := simulate.Compile(ctx, s, r.Scheduler, &recording.Header)
	if err != nil {
		return nil, err
	}
	servers, err := simulate.NewServers(s, "replay")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	o := simulate.Options{Timeout: r.Timeout, Snapshot: recording}
	server, err := servers.Prepare(ctx, p, &o)
	if err != nil {
		return nil, err
	}
	if result, err = On(ctx, s, server, o, recording, r.Step, r.Prices); err != nil {
		return nil, err
	}
	result.Programs = p.Origins
	return result, nil
}

// On replays a recording on an API server, with the scheduler in the options.
func On(
	ctx context.Context, s *session.Session, server *simulate.Server, o simulate.Options, recording *capture.Recording,
	step time.Duration, prices []report.Price,
) (*Result, error) {
	h := recording.Header
	length := time.Duration(h.Recording.Seconds * float64(time.Second))
	if step <= 0 {
		step = max(length/defaultGroups, shortestStep)
	}
	var history *History
	err := s.Step("read the recording", func() (err error) {
		history, err = readHistory(recording, length, prices)
		return err
	})
	if err != nil {
		return nil, err
	}
	d := newReplayer(history, recording, length, step, prices)
	o.Snapshot, o.Scenario, o.Observer = recording, scenario.Replay(), d
	begin := time.Now()
	rep, err := server.Run(ctx, o)
	if errors.Is(err, context.DeadlineExceeded) {
		err = problem.Errorf("allow more with --timeout, or make --step longer", "replay %s of %s: %w",
			d.now.Round(time.Second), length.Round(time.Second), err)
	}
	if err != nil {
		return nil, err
	}
	result := d.finish()
	result.Release, result.Scheduler, result.WallSeconds = rep.Release, rep.Scheduler, time.Since(begin).Seconds()
	result.Notes = slices.Concat(result.Notes, rep.Notes, h.Notes)
	if h.Source == snapshot.FromCluster {
		result.Notes = append(result.Notes, simulate.ConsistencyNotes(&h)...)
	}
	return result, nil
}

// readHistory reads the lives of a recording's pods.
func readHistory(
	recording *capture.Recording, length time.Duration, prices []report.Price,
) (*History, error) {
	history := NewHistory(length, prices)
	err := recording.Each(func(kind *snapshot.Kind, _ string, o map[string]any) error {
		return record(history, archive.Event{Kind: kind, Object: o}, true)
	})
	if err == nil {
		err = recording.Events(func(e archive.Event) error { return record(history, e, false) })
	}
	history.Finish()
	return history, err
}

// record adds an object from the snapshot, or a change, to a history.
func record(history *History, e archive.Event, begin bool) error {
	switch e.Kind.Name {
	case "Node":
		node := &corev1.Node{}
		if err := snapshot.Convert(e.Object, node); err != nil {
			return err
		}
		if e.Gone {
			history.NodeGone(e.At, node.Name)
		} else {
			history.Node(e.At, node)
		}
	case "Pod":
		pod := &corev1.Pod{}
		if err := snapshot.Convert(e.Object, pod); err != nil {
			return err
		}
		switch {
		case begin:
			history.Start(pod)
		case e.Gone:
			history.PodGone(e.At, pod)
		default:
			history.Pod(e.At, pod)
		}
	}
	return nil
}

// unknown are facts that no replay knows.
func unknown() []string {
	return []string{
		"reactions of controllers: an evicted pod is not created again, and a pod that was created because another one was " +
			"evicted in the recording arrives here, too",
		"actions of an autoscaler: nodes come and go as in the recording",
		"kubelets: start times, restarts, evictions under pressure and rejected pods; a pod runs as long after its binding as " +
			"in the recording, and a pod that was deleted is deleted at the same time",
		"when a pod that was evicted, or had not ended, in the recording would have ended: it runs until the end",
		"changes of pods after their arrival except for their end, and changes of volumes, claims and devices",
		"ties: the scheduler breaks them at random, and a pod on another node can move later pods",
	}
}
