package deploy

import (
	"cmp"
	"context"
	"fmt"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// Cluster changes a cluster, stores the revisions of schedulers and extenders in it, and lists the
// objects managed by pmk-sched.
type Cluster interface {
	Plan(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	PlanHelm(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Apply(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Delete(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Prune(ctx context.Context, ns, name string) (apply.ChangeSet, error)
	Owned(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error)
	ByHelm(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error)
	Deployments(ctx context.Context, ns string) ([]*unstructured.Unstructured, error)
	DeleteLeaderLease(ctx context.Context, ns, name string) (apply.Change, error)
	WaitStable(ctx context.Context, ns, deployment string, o apply.WaitOptions) error
	Shortage(ctx context.Context, deployment *unstructured.Unstructured) (replicas int, err error)

	SaveRevision(ctx context.Context, wanted apply.Revision) (*apply.Revision, error)
	SetRevisionStatus(ctx context.Context, r *apply.RevisionInfo, status apply.RevisionStatus, reason string) error
	Revisions(ctx context.Context, ns, name string) ([]apply.RevisionInfo, error)
	ReadRevision(ctx context.Context, info apply.RevisionInfo) (*apply.Revision, error)
	LastDeployed(ctx context.Context, ns, name string) (*apply.Revision, error)

	// Lock prevents two runs for one scheduler at the same time.
	Lock(ctx context.Context, ns, name, holder string) (held context.Context, unlock func(context.Context) error,
		err error)
}

// ReadLast reads the last deployed revision of a scheduler or extender, which may be damaged. It is
// nil if there is none.
func (d Deps) ReadLast(ctx context.Context, ns, name string) (*apply.Revision, error) {
	revisions, err := d.Cluster.Revisions(ctx, ns, name)
	if err != nil {
		return nil, err
	}
	last := apply.LastDeployed(revisions)
	if last == nil {
		return nil, nil
	}
	return d.Cluster.ReadRevision(ctx, *last)
}

// Deps are the steps' dependencies: the cluster, the checks and the scheduler's binary.
type Deps struct {
	// Config is the client configuration for the cluster. It is nil without a cluster.
	Config  *rest.Config
	Cluster Cluster
	// Holder identifies this process in the lock: "root@node-1 (process 4711)". By is the user and
	// the machine, recorded in revisions: "root@node-1".
	Holder, By string
	// Owner is the object that schedulers are deployed for, or "" for a user's command. OwnerExists
	// reports whether the owner that a revision records still exists; nil: it does.
	Owner       string
	OwnerExists func(ctx context.Context, owner string) (bool, error)
	// Preflight checks, before anything changes, whether the cluster can run the plan.
	Preflight func(ctx context.Context, plan *Plan) error
	// Binary finds the kube-scheduler in the plan's image, to check the configuration; dir is a
	// temporary directory to write it to. Its error is [configcheck.ErrNoBinary] if it is unavailable.
	Binary func(ctx context.Context, plan *Plan, dir string) (configcheck.Binary, error)
	// ProveRoute proves that new pods get the scheduler of a route, and returns a note; may be nil.
	ProveRoute func(ctx context.Context, rule route.Rule) (note string, err error)
	// Bounds limit a plan's images. The Cluster from [Connect] keeps them.
	Bounds session.Bounds
	// Signed verifies that a key signed an image, and returns its name with the digest.
	Signed func(ctx context.Context, r pack.SignatureRequest) (pinned string, err error)
	// Confirm asks the user; the question completes "refusing to …". If it is nil, permissions that
	// only a revision adds are refused.
	Confirm func(ctx context.Context, question string) error
	// Warn and Note print to the user; both may be nil.
	Warn, Note func(text string)
	// OnStep observes every step; may be nil.
	OnStep steps.OnStep
	// Log may be nil.
	Log *zap.Logger
}

// Connect returns the dependencies on a session's cluster. It sends nothing.
func Connect(s *session.Session) (Deps, error) {
	cfg, err := s.Connect()
	if err != nil {
		return Deps{}, err
	}
	client, err := apply.New(cfg, apply.Options{Log: s.Log})
	if err != nil {
		return Deps{}, err
	}
	d := Deps{
		Config: cfg, Cluster: client,
		Holder: session.Holder(), By: cmp.Or(s.Owner, session.User()), Owner: s.Owner, OwnerExists: ownerExists(cfg),
		Binary: func(ctx context.Context, plan *Plan, dir string) (configcheck.Binary, error) {
			return pack.FindScheduler(ctx, s.CacheDir, plan.Scheduler.Image, []string{manifest.Program}, dir)
		},
		ProveRoute: routeProver(cfg),
		Bounds:     s.Bounds, Signed: pack.VerifySignature, Confirm: s.Confirm,
		Warn: s.Warn, Note: s.Note, OnStep: s.OnStep, Log: s.Log,
	}
	d.Cluster = bounded(client, d)
	d.Preflight = func(ctx context.Context, plan *Plan) error {
		_, err := d.preflight(ctx, plan)
		return err
	}
	return d, nil
}

// Report prints a plan's notes and warnings.
func (d Deps) Report(plan *Plan) {
	if d.Note != nil {
		for _, note := range plan.Notes {
			d.Note(note)
		}
	}
	for _, warning := range plan.Warnings {
		d.Warnf("%s", warning)
	}
}

// Warnf passes a formatted warning to Warn, if it is set.
func (d Deps) Warnf(format string, args ...any) {
	if d.Warn != nil {
		d.Warn(fmt.Sprintf(format, args...))
	}
}
