package replace

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Node is the control-plane node that the session runs on, whose default scheduler is a static pod.
type Node struct {
	// Server is the API server's URL.
	Server string

	deps Deps
	info *inspect.Info
	o    Options

	// The rest is for a run through all nodes.
	s        *session.Session
	cfg      *rest.Config
	podImage string
}

// NodeOptions are the flags for replace that are not about the scheduler.
type NodeOptions struct {
	// Node is this node's name. If it is empty, the node is found by its addresses.
	Node            string
	Timeout, Stable time.Duration
	// AllNodes is for every control-plane node; then this may be any machine, unless PodImage is set:
	// the pmk-sched image for a pod on each node.
	AllNodes bool
	PodImage string
}

// requestTimeout bounds one request: a silent API server has to be noticed soon while a scheduler
// is replaced.
const requestTimeout = 10 * time.Second

// Replacement inspects the cluster for a replacement of the default scheduler.
func Replacement(ctx context.Context, s *session.Session, sp *spec.Spec, o NodeOptions) (*Node, error) {
	n := &Node{s: s, podImage: o.PodImage}
	var err error
	if n.o, err = replacement(sp); err != nil {
		return nil, err
	}
	n.o.Node, n.o.Names, n.o.Timeout, n.o.StableFor = o.Node, inspect.MachineNames(), o.Timeout, o.Stable
	if o.AllNodes && o.PodImage == "" {
		return n, n.inspect(ctx)
	}
	if err := n.o.Validate(); err != nil {
		return nil, err
	}
	plugins, err := sp.Plugins()
	if err != nil {
		return nil, err
	}
	if err := n.inspect(ctx); err != nil {
		return nil, err
	}
	if _, err := FindLayout(n.info); err != nil {
		return nil, err
	}
	if o.AllNodes {
		if err := n.verifyForNodes(ctx); err != nil {
			return nil, err
		}
	}
	return n, n.addPlugins(ctx, plugins)
}

// addPlugins adds the image's plugins.
func (n *Node) addPlugins(ctx context.Context, plugins []pack.Plugin) error {
	contents, err := pack.ReadPlugins(ctx, n.s, n.o.Image, n.info.Release, plugins)
	if err != nil {
		return err
	}
	spec := &n.o.Request.Spec
	if spec.RBAC.Rules == nil {
		contents.Warn(n.s)
	}
	if contents.Recipe != nil {
		contents.Recipe.Complete(spec)
	}
	n.o.Plugins, n.o.Packages = contents.Plugins, contents.Packages
	return nil
}

// replacement returns the options to replace the default scheduler with. The caller sets Node,
// Names, Timeout and StableFor.
func replacement(sp *spec.Spec) (Options, error) {
	r, image, err := sp.DefaultScheduler()
	if err != nil {
		return Options{}, err
	}
	_, clients, err := deploy.CalledExtenders(r)
	if err == nil && len(clients) > 0 {
		err = problem.Invalidf("remove certFile and keyFile, or use a --config that names files on the node",
			"the default scheduler is a static pod and cannot mount a client certificate for an extender")
	}
	return Options{Request: *r, Image: image}, err
}

// inspect connects and inspects the cluster.
func (n *Node) inspect(ctx context.Context) (err error) {
	if n.cfg, n.deps, err = connect(n.s); err != nil {
		return err
	}
	n.Server = n.cfg.Host
	if n.info, err = n.s.Inspect(ctx, n.cfg, "", ""); err != nil {
		return explainInterrupted(n.deps, err)
	}
	return nil
}

// Preview returns the changes that Run would make.
func (n *Node) Preview(ctx context.Context) (*Plan, error) {
	return DryRun(ctx, n.deps, n.info, n.o)
}

// Run replaces the node's default scheduler.
func (n *Node) Run(ctx context.Context) (*Outcome, error) {
	return Run(ctx, n.deps, n.info, n.o)
}

// RestoreNode restores this node's default scheduler.
func RestoreNode(ctx context.Context, s *session.Session, force bool) (*RestoreOutcome, error) {
	_, d, err := connect(s)
	if err != nil {
		return nil, err
	}
	return Restore(ctx, d, force)
}

// explainInterrupted adds to an error that an interrupted replacement may be its cause.
func explainInterrupted(d Deps, err error) error {
	if b, _ := staticpod.Current(d.Files); b != nil && b.State == staticpod.Started {
		return problem.WithHint(err,
			fmt.Sprintf(
				"a replacement was interrupted at step %q; `pmk-sched restore` restores the original manifest, also while the "+
					"API server is down", b.Step))
	}
	return err
}

// connect returns the dependencies on a session's cluster and on this node, and a client
// configuration.
func connect(s *session.Session) (*rest.Config, Deps, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, Deps{}, err
	}
	d, err := newDeps(s, cfg)
	return cfg, d, err
}

func newDeps(s *session.Session, cfg *rest.Config) (Deps, error) {
	root, err := s.FindNodeRoot()
	if err != nil {
		return Deps{}, err
	}
	short := rest.CopyConfig(cfg)
	short.Timeout = requestTimeout
	kube, err := kubernetes.NewForConfig(short)
	if err != nil {
		return Deps{}, err
	}
	client, err := apply.New(cfg, apply.Options{Log: s.Log})
	if err != nil {
		return Deps{}, err
	}
	return Deps{
		Files:   staticpod.Files{Resolve: func(path string) (string, error) { return inspect.OnHost(root, path) }},
		Kube:    kube,
		Applier: client,
		EnsureImage: func(ctx context.Context, reference string) error {
			return image.EnsureInContainerd(ctx, reference, s.Warn, s.OnStep)
		},
		Binary: func(ctx context.Context, reference string, command []string, dir string) (configcheck.Binary, error) {
			return pack.FindScheduler(ctx, s.CacheDir, reference, command, dir)
		},
		Signed: pack.VerifySignature, CheckProgram: deploy.CheckProgram,
		Verify: func(ctx context.Context, r *Plan, standby bool) error {
			return verifyReplacement(ctx, s, cfg, r, standby)
		},
		Holder: session.Holder(), Now: time.Now, Warn: s.Warn, Note: s.Note, OnStep: s.OnStep, Log: s.Log,
	}, nil
}

// verifyReplacement verifies that the new scheduler binds a pod, unless another node's scheduler
// is the leader.
func verifyReplacement(ctx context.Context, s *session.Session, cfg *rest.Config, r *Plan, standby bool) error {
	if standby {
		s.Warn(
			"another node's scheduler is the leader, so this one could not be tested with a pod; run `pmk-sched verify " +
				"--default` when all are replaced")
		return nil
	}
	v, err := verify.DefaultScheduler(ctx, cfg, verify.DefaultOptions{
		Options:    verify.Options{Image: r.Image, Timeout: time.Minute, Log: s.Log},
		Annotation: staticpod.AnnotationReplacement, Binary: staticpod.AnnotationBinary, Want: r.ID,
		Metrics: verify.LocalMetrics(cfg), Running: verify.RunningPrograms,
	})
	if err != nil {
		return err
	}
	s.Log.Info("the new scheduler bound a pod", zap.String("pod", v.Pod), zap.Float64("seconds", v.Seconds))
	return nil
}

// VerifyDefault verifies that the replaced default scheduler binds a pod.
func VerifyDefault(ctx context.Context, s *session.Session, o verify.Options) (*verify.DefaultResult, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	o.Log, o.OnStep = s.Log, s.OnStep
	return verify.DefaultScheduler(ctx, cfg, verify.DefaultOptions{
		Options: o, Annotation: staticpod.AnnotationReplacement, Binary: staticpod.AnnotationBinary,
		Metrics: verify.LocalMetrics(cfg), Running: verify.RunningPrograms,
	})
}
