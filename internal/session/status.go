package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health/observe"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Status is the state of all that pmk-sched manages on a cluster and on this node.
type Status struct {
	// Server is the release of the API server. It is empty if the API server does not answer.
	Server string `json:"server"`
	// Nodes are the control-plane nodes whose default scheduler is a static pod, Here the state of this node's files.
	Nodes []replace.NodeStatus `json:"nodes"`
	Here  *replace.HereStatus  `json:"here,omitempty"`
	// Schedulers are the second schedulers, Extenders the extenders that have their own Deployment.
	Schedulers []*health.Workload `json:"schedulers"`
	Extenders  []*health.Workload `json:"extenders"`
	// Findings are failed checks. Unknown lists facts that could not be read.
	Findings []health.Finding `json:"findings"`
	Unknown  []string         `json:"unknown,omitempty"`
	// Requests is how many requests were sent to the API server.
	Requests int64 `json:"requests"`
}

// Status reads the state of all that pmk-sched manages or, with a name, of that scheduler or extender. The status is complete if the error is a
// [*health.FindingsError].
func (s *Session) Status(ctx context.Context, name, namespace string) (*Status, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	requests := countRequests(cfg)
	status := &Status{
		Nodes: []replace.NodeStatus{}, Schedulers: []*health.Workload{}, Extenders: []*health.Workload{}, Findings: []health.Finding{}, // lists in JSON too
	}
	if name == "" {
		if err := s.defaultStatus(ctx, cfg, status); err != nil {
			return nil, err
		}
	}
	failed := s.observe(ctx, cfg, status, name, namespace)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, n := range status.Nodes {
		status.Findings = append(status.Findings, replacedFindings(n, status.Server)...)
	}
	now := time.Now()
	for _, list := range [][]*health.Workload{status.Schedulers, status.Extenders} {
		for _, w := range list {
			status.Findings = append(status.Findings, w.Findings(now)...)
			for _, unknown := range w.Unknown {
				status.Unknown = append(status.Unknown, w.String()+": "+unknown)
			}
		}
	}
	status.Requests = requests.Load()
	if len(status.Findings) > 0 {
		failed = errors.Join(&health.FindingsError{Findings: status.Findings}, failed)
	}
	return status, failed
}

// countRequests counts the requests of the clients that are made from cfg after it.
func countRequests(cfg *rest.Config) *atomic.Int64 {
	var requests atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &requests} })
	return &requests
}

// counter counts requests.
type counter struct {
	http.RoundTripper
	requests *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// defaultStatus reads the default schedulers and this node's files.
func (s *Session) defaultStatus(ctx context.Context, cfg *rest.Config, status *Status) error {
	deps, err := s.replaceDeps(cfg)
	if err != nil {
		return err
	}
	root, err := s.FindNodeRoot()
	if err != nil {
		return err
	}
	found, err := replace.ReadStatus(ctx, deps, root != "")
	var drift *replace.DriftError
	if err != nil && !errors.As(err, &drift) {
		return err
	}
	status.Nodes, status.Here, status.Unknown = found.Nodes, found.Here, found.Unknown
	if drift != nil {
		status.Findings = append(status.Findings, nodeFinding(drift))
	}
	return nil
}

// nodeFinding is the finding about this node's files.
func nodeFinding(e *replace.DriftError) health.Finding {
	f := health.Finding{Code: health.NodeFilesDrifted, Kind: health.Node, Name: e.Here.Node, Hint: e.Hint()}
	if e.Here.State == staticpod.Started {
		f.Code = health.ReplaceUnfinished
	}
	f.Text, f.Detail, _ = strings.Cut(e.Error(), "\n")
	return f
}

// replacedFindings are the findings about the replaced default scheduler of a node, in a cluster whose API server is of a release.
func replacedFindings(n replace.NodeStatus, server string) []health.Finding {
	if !n.Replaced {
		return nil
	}
	var found []health.Finding
	if !n.Ready {
		found = append(found, health.Finding{
			Code: health.DefaultNotReady, Kind: health.Node, Name: n.Node, Text: "its replaced default scheduler is not ready",
			Hint: "see `kubectl describe pod` of that node's kube-scheduler; `pmk-sched restore` on that node restores the original",
		})
	}
	release, known := inspect.ImageRelease(n.Image)
	if want, err := versions.Parse(server); known && err == nil && release.MinorString() != want.MinorString() {
		found = append(found, health.Finding{
			Code: health.ReleaseSkew, Kind: health.Node, Name: n.Node,
			Text: fmt.Sprintf("its replaced default scheduler is %s, the API server is %s", release, want),
			Hint: "`pmk-sched upgrade --default` on that node builds and runs it for that release",
		})
	}
	return found
}

// observe reads the second schedulers and the extenders.
func (s *Session) observe(ctx context.Context, cfg *rest.Config, status *Status, name, namespace string) error {
	short := rest.CopyConfig(cfg)
	short.Timeout = requestTimeout
	release, err := inspect.ServerRelease(short)
	if err != nil {
		return err
	}
	status.Server = release.String()
	o := observe.Options{
		Name: name, Namespace: namespace, Release: release,
		Answers: func(ctx context.Context, name, namespace string) error {
			return verify.ExtenderAnswers(ctx, cfg, name, namespace, manifest.ExtenderPort, s.Log)
		},
	}
	if o.ReadFile, err = s.readNodeFile(); err != nil {
		return err
	}
	if o.Kube, err = kubernetes.NewForConfig(short); err != nil {
		return err
	}
	o.Metrics = schedulerMetrics(cfg, o.Kube)
	if o.Objects, err = apply.New(short, apply.Options{Log: s.Log, Patience: requestTimeout}); err != nil {
		return err
	}
	found, err := observe.Run(ctx, o)
	if err != nil {
		return kubeapi.Explain("read schedulers and extenders", err)
	}
	if name != "" && len(found.Schedulers)+len(found.Extenders) == 0 {
		return problem.Invalidf("`pmk-sched status` lists those that are deployed", "no scheduler or extender %s is deployed", name)
	}
	status.Schedulers, status.Extenders = found.Schedulers, found.Extenders
	return nil
}

// schedulerMetrics returns how to read the metrics of schedulers and extenders.
func schedulerMetrics(cfg *rest.Config, kube kubernetes.Interface) kubeapi.Metrics {
	return kubeapi.Metrics{
		Pods: kube.CoreV1(), Machine: inspect.MachineNames(),
		Local: func(ctx context.Context, port int) (string, error) { return verify.MetricsAt(ctx, cfg, port) },
	}
}

// readNodeFile returns a function that reads a kubeconfig of this node. The function is nil if this
// is not a control-plane node.
func (s *Session) readNodeFile() (deploy.ReadNodeFile, error) {
	root, err := s.FindNodeRoot()
	if err != nil || root == "" {
		return nil, err
	}
	return nodeFileReader(root), nil
}
