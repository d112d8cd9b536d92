package replace

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Target identifies the static pod of a node's default scheduler and describes how to watch it.
type Target struct {
	Node string
	// Pod is the mirror pod's name in kube-system.
	Pod string
	// Alone reports whether this is the only control-plane node.
	Alone bool
	// Elects reports whether the scheduler uses leader election.
	Elects bool
	// HoldsAPI reports whether the API server is in the same pod.
	HoldsAPI bool
}

// targetOf returns the target of an earlier replacement.
func targetOf(b *staticpod.Backup) Target {
	return Target{Node: b.Node, Pod: b.Pod, Alone: b.Alone, Elects: b.Elects, HoldsAPI: b.HoldsAPI}
}

func (d Deps) watch(t Target) *staticpod.Watch {
	return &staticpod.Watch{
		Kube: d.Kube, Namespace: metav1.NamespaceSystem, Pod: t.Pod, Container: schedulerContainer, HoldsAPI: t.HoldsAPI,
		Elects: t.Elects, Alone: t.Alone, Log: d.Log,
	}
}

// scheduler is this node's current default scheduler.
type scheduler struct {
	Target
	layout    inspect.Layout
	file      *staticpod.File
	manifest  *staticpod.Manifest
	container *corev1.Container
	args      []string
	seen      *staticpod.Seen
}

// inspect reads the manifest and the pod of this node's default scheduler.
func (p *planner) inspect(ctx context.Context) (*scheduler, error) {
	layout, err := FindLayout(p.info)
	if err != nil {
		return nil, err
	}
	if layout.Rewriter != "" {
		p.warnf("%s rewrites %s when it starts, which `pmk-sched status` detects: %s", layout.Rewriter, layout.Manifest,
			layout.Persist)
	}
	s, err := p.readManifest(layout)
	if err != nil {
		return nil, err
	}
	if s.Node, err = FindNode(p.info, p.o.Node, p.o.Names); err != nil {
		return nil, err
	}
	s.Pod = s.manifest.Pod.Name + "-" + strings.ToLower(s.Node)
	s.Alone = len(p.info.ControlPlane.Nodes) == 1
	if s.seen, err = p.watch(s.Target).Observe(ctx); err != nil {
		return nil, err
	}
	if !s.seen.Ready {
		p.warnf("Pod/%s/%s is not ready now", s.manifest.Pod.Namespace, s.Pod)
	}
	return s, nil
}

// readManifest reads the scheduler's manifest.
func (p *planner) readManifest(layout inspect.Layout) (*scheduler, error) {
	s := &scheduler{layout: layout}
	var err error
	if s.file, err = p.Files.Read(layout.Manifest); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = problem.WithHint(err, "the manifest of this node's default scheduler is not where its layout has it")
		}
		return nil, err
	}
	if s.manifest, err = staticpod.Parse(layout.Manifest, s.file.Data); err != nil {
		return nil, err
	}
	if err := s.manifest.CheckDirectory(p.Files); err != nil {
		return nil, err
	}
	if s.container, err = s.manifest.Container(schedulerContainer); err != nil {
		return nil, err
	}
	if s.args, err = staticpod.Words(s.container, schedulerContainer); err != nil {
		return nil, problem.Invalidf("", "%w", err)
	}
	for _, c := range s.manifest.Pod.Spec.Containers {
		s.HoldsAPI = s.HoldsAPI || c.Name == "kube-apiserver"
	}
	elect, given := staticpod.Flag(s.args, "leader-elect")
	s.Elects = !given || elect == "true"
	if s.Elects {
		err = checkLease(s.args)
	}
	return s, err
}

// checkLease refuses flags with which the scheduler elects its leader by another object than the
// default scheduler's lease: the new scheduler would not wait for the ones on other nodes.
func checkLease(args []string) error {
	for _, f := range []struct{ name, expected string }{
		{"leader-elect-resource-name", schedulerLease}, {"leader-elect-resource-namespace", metav1.NamespaceSystem},
		{"lock-object-name", schedulerLease}, {"lock-object-namespace", metav1.NamespaceSystem},
		{"leader-elect-resource-lock", "leases"},
	} {
		// Locks with several object kinds have names such as endpointsleases.
		value, given := staticpod.Flag(args, f.name)
		ofSeveralKinds := f.expected == "leases" && strings.HasSuffix(value, f.expected)
		if given && value != f.expected && !ofSeveralKinds {
			return problem.Invalidf("remove the flag on every control-plane node first",
				"--%s=%s of the scheduler changes the lease for leader election: expected %s", f.name, value, f.expected)
		}
	}
	return nil
}
