// Package arbiter refuses bindings for which their node has no room left, whichever scheduler made
// them. One replica decides; the others pass reviews on to it. A binding that nobody decides about
// is allowed.
package arbiter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/pmk-sched/pmk-sched/internal/admission/authority"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Path is the first part of the webhook's path after the token.
const Path = "arbiter"

const (
	// eventWait is the time for which a decision waits, in steps of eventStep, for what the scheduler
	// has seen already: a pod that was created, or one whose deletion made room.
	eventWait = 100 * time.Millisecond
	eventStep = 5 * time.Millisecond
)

// Limits of the connections that are moved to the leader. A few API servers, each with the 25 idle
// connections that it keeps, move at once. If a network sends all of their connections to this
// replica, handshakes stay few.
const movesPerSecond, movesAtOnce = 5, 100

// Options are the options of New.
type Options struct {
	Config *rest.Config
	// Namespace of the arbiter and its lease.
	Namespace string
	// Pod is the name of this replica, Address the host and port at which others reach it.
	Pod, Address string
	Serving      *authority.Serving
	Log          *zap.Logger
	Metrics      prometheus.Registerer
}

// Arbiter decides about bindings.
type Arbiter struct {
	Options
	ledger    *Ledger
	informers []cache.SharedIndexInformer
	synced    func() bool
	election  leadership
	// leader is leadership.leader.
	leader  func() (since time.Time, address string)
	metrics *metrics
	client  *http.Client
	// moves limits the connections that are ended to move them to the leader.
	moves flowcontrol.PassiveRateLimiter
}

// New returns an arbiter. Run makes it decide.
func New(o Options) (*Arbiter, error) {
	kube, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("create the arbiter: %w", err)
	}
	a := &Arbiter{Options: o, ledger: NewLedger(),
		moves: flowcontrol.NewTokenBucketPassiveRateLimiter(movesPerSecond, movesAtOnce)}
	a.leader = a.election.leader
	a.client = &http.Client{Transport: a.transport()}
	if a.informers, a.synced, err = watch(kube, a.ledger); err != nil {
		return nil, err
	}
	if a.metrics, err = newMetrics(o.Metrics, a); err != nil {
		return nil, err
	}
	return a, nil
}

// Run watches the cluster and takes part in the leader election until ctx ends.
func (a *Arbiter) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, informer := range a.informers {
		group.Go(func() error {
			informer.RunWithContext(ctx)
			return nil
		})
	}
	group.Go(func() error { return a.election.elect(ctx, a.Config, a.Namespace, a.Pod, a.Address, a.Log) })
	return group.Wait()
}

// Ready returns why the arbiter cannot decide yet.
func (a *Arbiter) Ready() error {
	if !a.synced() {
		return errors.New("nodes and pods were not listed yet")
	}
	return nil
}

// Handle is the handler of the webhook. Connections on which reviews were passed on end, so that
// those of an API server are soon at the leader. If the leader does not answer, they stay.
func (a *Arbiter) Handle(ctx context.Context, path string, r *admissionv1.AdmissionRequest) (
	answer *admissionv1.AdmissionResponse, elsewhere bool) {
	answer, result := a.answer(ctx, path, r)
	a.metrics.decisions.WithLabelValues(result).Inc()
	return answer, result == resultForwarded && a.moves.TryAccept()
}

// Results of decisions in the metrics, in addition to the decisions of a ledger.
const (
	resultExcluded  = "excluded"  // not a binding to a node, or in a namespace that is left alone
	resultForwarded = "forwarded" // decided by the leader
	resultFailed    = "forward_failed"
	resultNoLeader  = "no_leader"
	resultSettling  = "settling" // the leader has begun to lead
	resultError     = "error"
)

func allowed() *admissionv1.AdmissionResponse { return &admissionv1.AdmissionResponse{Allowed: true} }

func (a *Arbiter) answer(ctx context.Context, path string, r *admissionv1.AdmissionRequest) (
	_ *admissionv1.AdmissionResponse, result string) {
	b, err := bindingOf(r)
	if err != nil {
		a.Log.Error("a binding could not be read", zap.String("pod", r.Namespace+"/"+r.Name), zap.Error(err))
		return allowed(), resultError
	}
	// API servers before 1.21 set no label by which the webhook could exclude the namespaces.
	if b == nil || b.pod.Namespace == metav1.NamespaceSystem || b.pod.Namespace == a.Namespace {
		return allowed(), resultExcluded
	}
	since, leader := a.leader()
	switch {
	case leader != "" && path != forwardedPath:
		answer, err := a.forward(ctx, leader, r)
		if err != nil {
			a.Log.Warn("the leader does not answer; the binding is allowed", zap.Stringer("pod", b.pod), zap.Error(err))
			return allowed(), resultFailed
		}
		return answer, resultForwarded
	case since.IsZero():
		return allowed(), resultNoLeader
	case time.Since(since) < settleTime || !a.synced():
		return allowed(), resultSettling
	}
	return a.decide(ctx, b)
}

func (a *Arbiter) decide(ctx context.Context, b *binding) (*admissionv1.AdmissionResponse, string) {
	decision, short := a.ledger.Admit(b.pod, b.uid, b.node, b.dryRun)
	for end := time.Now().Add(eventWait); (decision == Refused || decision == UnknownPod) && time.Now().Before(end); {
		if clock.Sleep(ctx, eventStep) != nil {
			break
		}
		decision, short = a.ledger.Admit(b.pod, b.uid, b.node, b.dryRun)
	}
	if decision != Refused {
		return allowed(), string(decision)
	}
	a.metrics.refused.WithLabelValues(string(short.Resource)).Inc()
	fields := []zap.Field{zap.Stringer("pod", b.pod), zap.String("node", b.node),
		zap.String("resource", string(short.Resource))}
	if short.Taker != nil {
		fields = append(fields, zap.Stringer("taker", short.Taker.key()))
	}
	a.Log.Info("refused a binding", fields...)
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Message: refusal(b, short),
	}}, string(Refused)
}

// refusal returns the message of the scheduler's event. Users of the pod's namespace read it, so
// that it names a pod of another namespace by its UID, as events of preemptions do.
func refusal(b *binding, s *Shortage) string {
	text := fmt.Sprintf("node %s has not enough %s left for pod %s: requested %s, left %s", b.node, s.Resource, b.pod,
		scheduler.FormatAmount(s.Resource, s.Requested), scheduler.FormatAmount(s.Resource, s.Left))
	if s.Resource == hostPort {
		text = fmt.Sprintf("node %s has host port %d, which pod %s requests, in use", b.node, s.Requested, b.pod)
	}
	if s.Taker == nil {
		return text
	}
	role, named := "the last pod that was bound there", "has the UID "+string(s.Taker.UID)
	if s.Taker.Namespace == b.pod.Namespace {
		named = "is " + s.Taker.key().String()
	}
	if s.Keeps {
		role = "the pod of another scheduler that is nominated for it"
	}
	return text + "; " + role + " " + named
}

// binding is a request to bind a pod to a node.
type binding struct {
	pod    types.NamespacedName
	uid    types.UID
	node   string
	dryRun bool
}

// bindingOf returns the binding of a request, or nil if it is not the creation of a binding to a
// node. Bindings are created as a subresource of their pod or as a resource.
func bindingOf(r *admissionv1.AdmissionRequest) (*binding, error) {
	if r.Operation != admissionv1.Create || r.Resource.Group != "" ||
		(r.Resource.Resource != "pods" || r.SubResource != "binding") && r.Resource.Resource != "bindings" {
		return nil, nil
	}
	// The part of a Binding that matters.
	var object struct {
		Metadata struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"metadata"`
		Target struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"target"`
	}
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		return nil, fmt.Errorf("decode the binding: %w", err)
	}
	if kind := object.Target.Kind; kind != "" && kind != "Node" {
		return nil, nil
	}
	name := r.Name
	if name == "" {
		name = object.Metadata.Name
	}
	return &binding{pod: types.NamespacedName{Namespace: r.Namespace, Name: name}, uid: object.Metadata.UID,
		node: object.Target.Name, dryRun: r.DryRun != nil && *r.DryRun}, nil
}
