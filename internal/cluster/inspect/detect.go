package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1api "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	admissionv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Detect inspects the cluster that cfg names and, if o.NodeRoot is a control-plane node's root, the
// node. It fails only if the API server's version cannot be read or ctx ends.
func Detect(ctx context.Context, cfg *rest.Config, o Options) (*Info, error) {
	d, err := newDetector(cfg, o.withDefaults())
	if err != nil {
		return nil, err
	}
	if err := d.server(ctx); err != nil {
		return nil, err
	}
	for _, inspect := range []func(context.Context){
		d.source, d.countNodes, d.controlPlane, d.node, d.pods, d.gangs, d.routing, d.arbiter, d.identify, d.endpoint,
		d.lease, d.ports, d.deployed, d.checkAll,
	} {
		inspect(ctx)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("detect cluster at %s: %w", d.info.Server.URL, err)
		}
	}
	return d.info, nil
}

// detector fills an Info step by step. Later steps use earlier steps' results.
type detector struct {
	o      Options
	core   corev1.CoreV1Interface
	leases coordinationv1.LeasesGetter
	apps   appsv1.DeploymentsGetter
	// admission has the webhooks.
	admission interface {
		admissionv1.MutatingWebhookConfigurationsGetter
		admissionv1.ValidatingWebhookConfigurationsGetter
	}
	// trusted is the PEM bundle with the CAs that the caller's configuration trusts.
	trusted []byte

	info   *Info
	rules  versions.Rules
	traits traits
	// hosts are the pods that use ports on control-plane nodes.
	hosts []hostPod
	// schedulers are the default scheduler's static pods, unlabelled those in kube-system on other
	// nodes than the labelled ones.
	schedulers, unlabelled []corev1api.Pod
	// serversKnown is set if the API servers' addresses are known.
	serversKnown bool
	// workersRead counts the nodes that were read in a cluster without control-plane nodes.
	workersRead int
	// nodesListed is set if the nodes could be listed.
	nodesListed bool
}

// requestTimeout bounds each request unless the caller's configuration does.
const requestTimeout = 30 * time.Second

func newDetector(cfg *rest.Config, o Options) (*detector, error) {
	cfg = kubeapi.ClientConfig(cfg, o.Log)
	if cfg.Timeout == 0 {
		cfg.Timeout = requestTimeout
	}
	// Decoding nodes and pods from JSON costs several times the CPU.
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read client configuration: %w", err)
	}
	core, err := corev1.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	leases, err := coordinationv1.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	apps, err := appsv1.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	admission, err := admissionv1.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	d := &detector{o: o, core: core, leases: leases, apps: apps, admission: admission, info: emptyInfo(o)}
	if err := rest.LoadTLSFiles(cfg); err == nil {
		d.trusted = cfg.CAData
	}
	address := core.RESTClient().Get().AbsPath("/").URL()
	address.RawQuery = "" // the timeout
	d.info.Server.URL = strings.TrimSuffix(address.String(), "/")
	return d, nil
}

// emptyInfo returns an Info with empty lists instead of nil, for JSON.
func emptyInfo(o Options) *Info {
	return &Info{
		Distribution:  DistributionUnknown,
		Layout:        LayoutUnknown,
		Configuration: Configuration{Accepted: []string{}},
		Nodes:         Nodes{Kubelets: []KubeletCount{}},
		ControlPlane:  ControlPlane{Nodes: []ControlPlaneNode{}},
		Scheduler: Scheduler{
			Taken: []TakenPort{}, Runs: RunsUnknown, Pods: []SchedulerPod{},
			Lease: Lease{Namespace: kubeSystem, Name: "kube-scheduler"}, Deployed: []DeployedScheduler{},
		},
		Node:          Node{Root: o.NodeRoot},
		Credentials:   Credentials{Groups: []string{}},
		KnownProblems: []KnownProblem{},
		Warnings:      []string{},
	}
}

func (d *detector) warn(format string, args ...any) {
	d.info.Warnings = append(d.info.Warnings, fmt.Sprintf(format, args...))
}

// warnUnread warns that something could not be read, and names the unknown consequence.
func (d *detector) warnUnread(err error, doing, unknown string) {
	err = kubeapi.Explain(doing, err)
	d.o.Log.Debug("could not read", zap.String("what", doing), zap.Error(err))
	d.warn("%v: %s", err, unknown)
}

// server reads the API server's version, the only thing that is required.
func (d *detector) server(ctx context.Context) error {
	doing := "read the version of the API server " + d.info.Server.URL
	raw, err := rawResult(d.core.RESTClient().Get().AbsPath("/version").SetHeader("Accept",
		runtime.ContentTypeJSON).Do(ctx))
	if err != nil {
		return kubeapi.Explain(doing, err)
	}
	var reported version.Info
	if err := json.Unmarshal(raw, &reported); err != nil {
		return problem.Errorf("check that this is the address of a Kubernetes API server",
			"%s: the response is not a version: %w", doing, err)
	}
	release, err := versions.FromServer(reported.GitVersion)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	d.info.Server.Version = reported.GitVersion
	d.info.Server.Platform = reported.Platform
	d.info.Release = release
	d.traits.version = reported.GitVersion
	return nil
}

// source derives the source and the configuration API from the release.
func (d *detector) source(ctx context.Context) {
	release := d.info.Release
	_, err := versions.Select(release)
	if err != nil {
		d.warn("%v", err)
	}
	rules := release.Rules()
	d.rules = rules
	d.info.Source = Source{Branch: release.String(), Module: "k8s.io/kubernetes@" + release.String(), Go: rules.Go}
	d.info.Configuration.APIVersion = rules.Preferred
	d.info.Configuration.Rendered = rules.Render
	d.info.KnownProblems = append(d.info.KnownProblems, problemsOf("", release, nil)...)
	d.info.Configuration.Accepted = append(d.info.Configuration.Accepted, rules.Accepted...)
	if d.o.SourceGo == nil || err != nil {
		return
	}
	named, err := d.o.SourceGo(ctx, release)
	if err != nil {
		d.warn("the Go version of %s could not be read (%v): using %s, the version of its minor", release, err, rules.Go)
		return
	}
	d.info.Source.Go = strings.TrimPrefix(named, "go")
}

// rawResult returns a response's body. Unlike rest.Result.Raw it returns the server's message as
// the error if the request failed.
func rawResult(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
