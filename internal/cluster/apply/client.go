package apply

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Options for a [Client]. The zero value means the defaults.
type Options struct {
	// Log may be nil.
	Log *zap.Logger
	// Patience is the longest tolerated outage of an API server that was reached before; after it an
	// operation fails. The operation's context can end it sooner. Defaults to
	// [kubeapi.DefaultPatience].
	Patience time.Duration
	// LockDuration is a lock's validity after its last renewal. Defaults to 15 s.
	LockDuration time.Duration
	// ControllerGrace is the longest time without activity by the controller manager before a wait for
	// it ends. Defaults to 45 s.
	ControllerGrace time.Duration
}

// Client changes one cluster. It is safe for concurrent use.
type Client struct {
	log   *zap.Logger
	locks time.Duration // how long a lock is valid
	grace time.Duration // how long the controller manager may do nothing
	retry *kubeapi.Retrier
	api   client.Client // retries automatically, and confirms locks before each write
	kube  kubernetes.Interface
	ssa   *ssa.ResourceManager
	// held has this client's locks. leases is api without confirmation, for the locks; direct does not
	// retry either.
	held           sync.Map
	leases, direct client.Client
}

// New returns a client for the cluster that cfg names. It sends no request.
func New(cfg *rest.Config, o Options) (*Client, error) {
	log := o.Log
	if log == nil {
		log = zap.NewNop()
	}
	cfg = kubeapi.ClientConfig(cfg, log)
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	direct, err := client.New(cfg, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	retry := &kubeapi.Retrier{Log: log, Patience: o.Patience}
	c := &Client{log: log, locks: cmp.Or(o.LockDuration, lockDuration),
		grace: cmp.Or(o.ControllerGrace, controllerGrace), retry: retry, kube: kube, direct: direct,
		leases: &retrying{Client: direct, retry: retry}}
	c.api = &retrying{Client: direct, retry: retry, confirm: c.confirmLocks}
	// The poller is only for flux's own wait, which ends as soon as an object is ready: see
	// WaitStable.
	c.ssa = ssa.NewResourceManager(c.api, nil, ssa.Owner{Field: ownership.Manager, Group: ownership.Manager})
	return c, nil
}

// retrying is a client that retries requests while the API server is unavailable for a moment, and
// explains errors. flux's ResourceManager ignores errors from Get, so they must not be transient.
type retrying struct {
	client.Client
	retry *kubeapi.Retrier
	// confirm, if set, is called before each attempt to write.
	confirm func(ctx context.Context) error
}

// write is [kubeapi.Retrier.Do] for a write.
func (r *retrying) write(ctx context.Context, doing string, attempt func(ctx context.Context) error) error {
	return r.retry.Do(ctx, doing, func(ctx context.Context) error {
		if r.confirm != nil {
			if err := r.confirm(ctx); err != nil {
				return err
			}
		}
		return attempt(ctx)
	})
}

func (r *retrying) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	doing := "read " + subject(r.Client, obj, key.Namespace, key.Name)
	return r.retry.Do(ctx, doing, func(ctx context.Context) error { return r.Client.Get(ctx, key, obj, opts...) })
}

func (r *retrying) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := r.GroupVersionKindFor(list)
	if err != nil {
		gvk.Kind = "objects"
	}
	doing := "list " + strings.TrimSuffix(gvk.Kind, "List") + "s"
	return r.retry.Do(ctx, doing, func(ctx context.Context) error { return r.Client.List(ctx, list, opts...) })
}

func (r *retrying) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	doing := "create " + subject(r.Client, obj, obj.GetNamespace(), obj.GetName())
	return r.write(ctx, doing, func(ctx context.Context) error { return r.Client.Create(ctx, obj, opts...) })
}

func (r *retrying) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	doing := "update " + subject(r.Client, obj, obj.GetNamespace(), obj.GetName())
	return r.write(ctx, doing, func(ctx context.Context) error { return r.Client.Update(ctx, obj, opts...) })
}

func (r *retrying) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	doing := "apply " + subject(r.Client, obj, obj.GetNamespace(), obj.GetName())
	return r.write(ctx, doing, func(ctx context.Context) error { return r.Client.Patch(ctx, obj, patch, opts...) })
}

func (r *retrying) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return r.write(ctx, "apply", func(ctx context.Context) error { return r.Client.Apply(ctx, obj, opts...) })
}

func (r *retrying) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	doing := "delete " + subject(r.Client, obj, obj.GetNamespace(), obj.GetName())
	return r.write(ctx, doing, func(ctx context.Context) error { return r.Client.Delete(ctx, obj, opts...) })
}

// subject returns an object's name as in a ChangeSet. Typed objects do not have their kind; the
// client knows it.
func subject(c client.Client, obj runtime.Object, namespace, name string) string {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		gvk = schema.GroupVersionKind{Kind: "object"}
	}
	return kubeapi.ObjectName(gvk.Kind, namespace, name)
}

func nameOf(obj *unstructured.Unstructured) string {
	return kubeapi.ObjectName(obj.GetKind(), obj.GetNamespace(), obj.GetName())
}
