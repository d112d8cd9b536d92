// Package observe reads the schedulers and extenders in a cluster for package health. It sends all
// requests first, and describes the answers afterwards without further requests.
package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Objects reads the deployed revisions, and compares them with the live objects.
type Objects interface {
	DeployedNames(ctx context.Context, ns string) ([]types.NamespacedName, error)
	Revisions(ctx context.Context, ns, name string) ([]apply.RevisionInfo, error)
	ReadRevision(ctx context.Context, info apply.RevisionInfo) (*apply.Revision, error)
	Compare(ctx context.Context, objs []*unstructured.Unstructured) ([]apply.Comparison, error)
	Live(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Options are the workloads to read, and the clients to read them with.
type Options struct {
	// Name, if set, is the only scheduler or extender to read. Namespace is the one to read without
	// permission to list all namespaces.
	Name, Namespace string
	// Release is the API server's release.
	Release versions.Release
	Kube    kubernetes.Interface
	Objects Objects
	// Answers returns an error unless the API server reaches one of an extender's ready pods.
	Answers func(ctx context.Context, name, namespace string) error
	Metrics kubeapi.Metrics
	// ReadFile reads a kubeconfig on this node. It is nil if this is not a control-plane node.
	ReadFile deploy.ReadNodeFile
}

// RequestTimeout bounds one request, so that a silent API server is noticed soon.
const RequestTimeout = 10 * time.Second

// Cluster reads the schedulers and extenders in a cluster or, with a name, only that one. release
// is the API server's release.
func Cluster(
	ctx context.Context, s *session.Session, cfg *rest.Config, release versions.Release, name, namespace string,
) (_ *Result, err error) {
	short := rest.CopyConfig(cfg)
	short.Timeout = RequestTimeout
	o := Options{
		Name: name, Namespace: namespace, Release: release,
		Answers: func(ctx context.Context, name, namespace string) error {
			return verify.ExtenderAnswers(ctx, cfg, name, namespace, manifest.ExtenderPort, s.Log)
		},
	}
	if o.ReadFile, err = deploy.NodeFileReader(s); err != nil {
		return nil, err
	}
	if o.Kube, err = kubernetes.NewForConfig(short); err != nil {
		return nil, err
	}
	o.Metrics = Metrics(cfg, o.Kube)
	if o.Objects, err = apply.New(short, apply.Options{Log: s.Log, Patience: RequestTimeout}); err != nil {
		return nil, err
	}
	found, err := Run(ctx, o)
	if err != nil {
		return nil, kubeapi.Explain("read schedulers and extenders", err)
	}
	if name != "" && len(found.Schedulers)+len(found.Extenders) == 0 {
		return nil, problem.Invalidf("`pmk-sched status` lists those that are deployed",
			"no scheduler or extender %s is deployed", name)
	}
	return found, nil
}

// Metrics returns a reader for the metrics of schedulers and extenders.
func Metrics(cfg *rest.Config, kube kubernetes.Interface) kubeapi.Metrics {
	return kubeapi.Metrics{
		Pods: kube.CoreV1(), Machine: inspect.MachineNames(),
		Local: func(ctx context.Context, port int) (string, error) { return verify.MetricsAt(ctx, cfg, port) },
	}
}

// Result are the schedulers and extenders, by namespace and name.
type Result struct {
	Schedulers, Extenders []*health.Workload
	// Arbiter is nil if none is registered, or if a name was given.
	Arbiter *health.Arbiter
	// Unknown lists the parts of the arbiter that could not be read.
	Unknown []string
}

// Run reads the schedulers and extenders that pmk-sched, or Helm from a chart by pmk-sched,
// installed. If a part of one cannot be read, the reason is in its field Unknown.
func Run(ctx context.Context, o Options) (*Result, error) {
	c, err := read(ctx, o)
	if err != nil {
		return nil, err
	}
	result := c.describe(o.Release)
	result.Arbiter, result.Unknown = c.arbiter, c.unknown
	return result, nil
}
