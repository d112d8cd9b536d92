package replace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/internal/replace/noderun"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

const (
	// nodeRunTime is the time that pmk-sched may take on a node in addition to its waits: image pulls,
	// checks, an undo.
	nodeRunTime = 10 * time.Minute
	// mirrorTime is the time that the API server may show a node's former static pod: the kubelet
	// replaces it within seconds.
	mirrorTime = time.Minute
	// unlockTime is the time that releasing the lock may take.
	unlockTime = 30 * time.Second
)

// nodeRequest is the request to pmk-sched in a pod on a node, see [OnNode].
type nodeRequest struct {
	// Version of the pmk-sched that makes the request. Another version may understand the request
	// differently.
	Version string `json:"version"`
	// Restore restores the original scheduler, also an edited one with Force. Otherwise Options
	// replaces it.
	Restore bool    `json:"restore,omitempty"`
	Force   bool    `json:"force,omitempty"`
	Options Options `json:"options"`
	// Scheduler is the image whose program the pod has, for a container whose command names Programs.
	Scheduler string   `json:"scheduler,omitempty"`
	Programs  []string `json:"programs,omitempty"`
}

// NodeResult is one node's result in a run through all nodes.
type NodeResult struct {
	Node string `json:"node"`
	// Changed is false if nothing was to be done.
	Changed bool   `json:"changed"`
	Image   string `json:"image,omitempty"`
	// Manifest is the outcome for the manifest when it was restored.
	Manifest string `json:"manifest,omitempty"`
	Backup   string `json:"backup,omitempty"`
}

// Commands returns the plan for each control-plane node, with the command to run on the node if no
// pod runs it.
func (n *Node) Commands(ctx context.Context, command string) ([]NodePlan, error) {
	return PlanNodes(ctx, n.deps, n.info, n.goal(command))
}

func (n *Node) goal(command string) Goal {
	return Goal{Image: strings.ReplaceAll(n.o.Image, image.ReleaseInTag, n.info.Release.String()), Command: command}
}

// RunAll replaces the default schedulers on all control-plane nodes, one after the other, and stops
// at the first failure. It returns the results for the nodes that are done. version is pmk-sched's
// version. Another run resumes: on each node pmk-sched compares the files with the request and
// changes only files that differ.
func (n *Node) RunAll(ctx context.Context, version string) ([]NodeResult, error) {
	r := &nodesRun{Node: n, goal: n.goal(""), request: nodeRequest{Version: version, Options: n.o}}
	r.request.Options.Names = nil
	return r.run(ctx)
}

// Restoration inspects the cluster for a restoration on all control-plane nodes. podImage is the
// pmk-sched image for a pod on each. If key, in PEM, is not empty, it must have signed it.
func Restoration(ctx context.Context, s *session.Session, podImage, key string) (*Node, error) {
	n := &Node{s: s, podImage: podImage}
	if err := n.inspect(ctx); err != nil || key == "" {
		return n, err
	}
	return n, n.verifyPodImage(ctx, key)
}

// RestoreCommands is like Commands, to restore the schedulers.
func (n *Node) RestoreCommands(ctx context.Context, command string) ([]NodePlan, error) {
	return PlanNodes(ctx, n.deps, n.info, Goal{Restored: true, Command: command})
}

// RestoreAll restores the default schedulers on all control-plane nodes, as RunAll replaces them.
func (n *Node) RestoreAll(ctx context.Context, version string, force bool) ([]NodeResult, error) {
	r := &nodesRun{Node: n, goal: Goal{Restored: true},
		request: nodeRequest{Version: version, Restore: true, Force: force}}
	return r.run(ctx)
}

// nodesRun is one run through all nodes.
type nodesRun struct {
	*Node
	goal    Goal
	request nodeRequest
	layout  inspect.Layout
	runner  *noderun.Runner
}

func (r *nodesRun) run(ctx context.Context) (results []NodeResult, err error) {
	if r.layout, err = FindLayout(r.info); err != nil {
		return nil, err
	}
	if r.layout.AdminKubeconfig == "" {
		return nil, problem.Invalidf("leave --pod-image out, and run the printed command on each node",
			"a pod on a node of %s finds no administrator's kubeconfig there", r.layout.Name)
	}
	client, err := apply.New(r.cfg, apply.Options{Log: r.s.Log})
	if err != nil {
		return nil, err
	}
	r.runner = noderun.New(r.deps.Kube, r.s.Log)
	held, unlock, err := client.Lock(ctx, noderun.Namespace, corev1.DefaultSchedulerName, session.Holder())
	if err != nil {
		return nil, err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTime)
		defer cancel()
		err = errors.Join(err, unlock(limited))
	}()
	plan, err := PlanNodes(held, r.deps, r.info, r.goal)
	if err != nil {
		return nil, err
	}
	if err := r.goal.Check(plan); err != nil {
		return nil, err
	}
	return eachNode(plan,
		func(entry NodePlan) (*NodeResult, error) { return r.node(held, entry) },
		func(result *NodeResult, last bool) error { return r.confirm(held, result, last) })
}

// eachNode calls do for each node in a plan, and confirm before the next node, until the first
// failure. It returns the results for the nodes for which do succeeded.
func eachNode(plan []NodePlan, do func(entry NodePlan) (*NodeResult, error),
	confirm func(result *NodeResult, last bool) error) ([]NodeResult, error) {
	results := []NodeResult{}
	for i, entry := range plan {
		result, err := do(entry)
		if err == nil {
			results = append(results, *result)
			err = confirm(result, i == len(plan)-1)
		}
		if err != nil {
			return results, problem.WithHint(err,
				fmt.Sprintf("%d of %d nodes are done; run the same command again to resume", len(results), len(plan)))
		}
	}
	return results, nil
}

// node runs the request on a node, in a pod.
func (r *nodesRun) node(ctx context.Context, entry NodePlan) (*NodeResult, error) {
	task, err := r.task(entry)
	if err != nil {
		return nil, err
	}
	var report *noderun.Report
	err = r.s.Step(r.verb()+" node "+entry.Node, func() error {
		if report, err = r.runner.Run(ctx, task); err != nil {
			return err
		}
		return report.Err()
	})
	if report != nil {
		for _, warning := range report.Warnings {
			r.s.Warn("node " + entry.Node + ": " + warning)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s node %s: %w", r.verb(), entry.Node, err)
	}
	return decodeResult(entry.Node, r.request.Restore, report.Result)
}

func (r *nodesRun) verb() string {
	if r.request.Restore {
		return "restore"
	}
	return "replace"
}

// task returns the pod's task for a node.
func (r *nodesRun) task(entry NodePlan) (noderun.Task, error) {
	request := r.request
	task := noderun.Task{
		Node: entry.Node, Image: r.podImage, Kubeconfig: r.layout.AdminKubeconfig,
		Directories: slices.DeleteFunc(Directories(r.layout), func(dir string) bool { return dir == staticpod.StateDir }),
		Created:     []string{staticpod.StateDir},
		Timeout:     nodeRunTime + cmp.Or(r.o.Timeout, DefaultTimeout) + cmp.Or(r.o.StableFor, DefaultStableFor),
	}
	if !request.Restore {
		task.Scheduler, task.Programs = cmp.Or(r.goal.Image, entry.Image), entry.Programs
		request.Options.Node, request.Scheduler, request.Programs = entry.Node, task.Scheduler, task.Programs
	}
	var err error
	task.Request, err = json.Marshal(request)
	return task, err
}

// decodeResult reads the outcome of Run or Restore.
func decodeResult(node string, restored bool, text []byte) (*NodeResult, error) {
	if restored {
		outcome := &RestoreOutcome{}
		err := json.Unmarshal(text, outcome)
		manifest := cmp.Or(outcome.Manifest, ManifestUnchanged)
		return &NodeResult{Node: node, Changed: manifest == ManifestRestored, Manifest: manifest, Backup: outcome.Backup}, err
	}
	outcome := &Outcome{}
	err := json.Unmarshal(text, outcome)
	return &NodeResult{Node: node, Changed: outcome.Backup != "", Image: outcome.Image, Backup: outcome.Backup}, err
}

// confirm waits until the API server shows the state that the node reported, and verifies that the
// default scheduler binds a pod. While nodes differ, any scheduler may bind it; after the last node
// it must be a replaced one.
func (r *nodesRun) confirm(ctx context.Context, result *NodeResult, last bool) error {
	if !result.Changed && !last {
		return nil
	}
	err := r.s.Step("wait until the scheduler of node "+result.Node+" is ready",
		func() error { return r.awaitScheduler(ctx, result.Node) })
	if err != nil {
		return err
	}
	return r.s.Step("verify that a pod is scheduled", func() error {
		_, err := verify.DefaultScheduler(ctx, r.cfg, verify.DefaultOptions{
			Options:    verify.Options{Timeout: time.Minute, Log: r.s.Log},
			Annotation: staticpod.AnnotationReplacement, Binary: staticpod.AnnotationBinary, Unreplaced: !last ||
				r.request.Restore,
		})
		return err
	})
}

// awaitScheduler waits until a node's default scheduler matches the goal and is ready.
func (r *nodesRun) awaitScheduler(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	for {
		plan, err := PlanNodes(ctx, r.deps, r.info, r.goal)
		if err == nil {
			if slices.ContainsFunc(plan, func(p NodePlan) bool { return p.Node == node && p.Done && p.SchedulerReady }) {
				return nil
			}
			err = fmt.Errorf("wait for the scheduler of node %s: its static pod is not ready, or not as the node reported", node)
		}
		if clock.Sleep(ctx, time.Second) != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
