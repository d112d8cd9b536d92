package replace

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health/observe"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Status is the state of all that pmk-sched manages on a cluster and on this node.
type Status struct {
	// Server is the API server's release. It is empty if the API server does not answer.
	Server string `json:"server"`
	// Nodes are the control-plane nodes whose default scheduler is a static pod, Here the state of
	// this node's files.
	Nodes []NodeStatus `json:"nodes"`
	Here  *HereStatus  `json:"here,omitempty"`
	// Schedulers are the second schedulers, Extenders the extenders that have their own Deployment.
	Schedulers []*health.Workload `json:"schedulers"`
	Extenders  []*health.Workload `json:"extenders"`
	// Arbiter is nil if none is registered, if that may not be read, or if one scheduler was read.
	Arbiter *health.Arbiter `json:"arbiter,omitempty"`
	// Findings are failed checks. Unknown lists facts that could not be read.
	Findings []health.Finding `json:"findings"`
	Unknown  []string         `json:"unknown,omitempty"`
	// Requests is the number of requests that were sent to the API server.
	Requests int64 `json:"requests"`
}

// NodeStatus is one node's default scheduler.
type NodeStatus struct {
	Node string `json:"node"`
	// Replaced reports whether pmk-sched replaced it.
	Replaced    bool   `json:"replaced"`
	Replacement string `json:"replacement,omitempty"`
	Image       string `json:"image"`
	Ready       bool   `json:"ready"`
	Leads       bool   `json:"leads"`
}

// HereStatus is the state of this node's files.
type HereStatus struct {
	Node   string          `json:"node"`
	State  staticpod.State `json:"state"`
	Image  string          `json:"image"`
	Since  time.Time       `json:"since"`
	Backup string          `json:"backup"`
	// Step is the step at which an unfinished run stopped.
	Step string `json:"step,omitempty"`
	// Drift lists the files that differ from the files that pmk-sched wrote.
	Drift []Drift `json:"drift,omitempty"`
}

// Remedies for an unfinished replacement, and for changed files.
const (
	resumeReplace = "run `pmk-sched replace` again with the same flags, or restore the original with `pmk-sched restore`"
	repeatReplace = "run `pmk-sched upgrade --default`, which keeps the configuration, or `pmk-sched replace`; " +
		"`pmk-sched restore` restores the original"
)

// ReadStatus reads the state of all that pmk-sched manages or, with a name, only that scheduler's
// or extender's. The status is complete if the error is a [*health.FindingsError].
func ReadStatus(ctx context.Context, s *session.Session, name, namespace string) (*Status, error) {
	status := &Status{ // lists in JSON too
		Nodes: []NodeStatus{}, Schedulers: []*health.Workload{}, Extenders: []*health.Workload{},
		Findings: []health.Finding{},
	}
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	requests := kubeapi.CountRequests(cfg)
	if name == "" {
		if err := status.readDefault(ctx, s, cfg); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	failed := status.readSchedulers(ctx, s, cfg, name, namespace)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	status.judge(time.Now())
	status.Requests = requests.Load()
	if len(status.Findings) > 0 {
		failed = errors.Join(&health.FindingsError{Findings: status.Findings}, failed)
	}
	return status, failed
}

// readSchedulers reads the second schedulers and the extenders.
func (s *Status) readSchedulers(
	ctx context.Context, on *session.Session, cfg *rest.Config, name, namespace string,
) error {
	short := rest.CopyConfig(cfg)
	short.Timeout = requestTimeout
	release, err := inspect.ServerRelease(short)
	if err != nil {
		return err
	}
	s.Server = release.String()
	found, err := observe.Cluster(ctx, on, cfg, release, name, namespace)
	if err == nil {
		s.Schedulers, s.Extenders, s.Arbiter = found.Schedulers, found.Extenders, found.Arbiter
		s.Unknown = append(s.Unknown, found.Unknown...)
	}
	return err
}

// judge adds the findings about the nodes, the schedulers and the extenders.
func (s *Status) judge(now time.Time) {
	for _, n := range s.Nodes {
		s.Findings = append(s.Findings, replacedFindings(n, s.Server)...)
	}
	for _, w := range slices.Concat(s.Schedulers, s.Extenders) {
		s.Findings = append(s.Findings, w.Findings(now)...)
		for _, unknown := range w.Unknown {
			s.Unknown = append(s.Unknown, w.String()+": "+unknown)
		}
	}
	if s.Arbiter != nil {
		s.Findings = append(s.Findings, s.Arbiter.Findings(now)...)
	}
}

// readDefault reads the default schedulers and this node's files.
func (s *Status) readDefault(ctx context.Context, on *session.Session, cfg *rest.Config) error {
	d, err := newDeps(on, cfg)
	if err != nil {
		return err
	}
	root, err := on.FindNodeRoot()
	if err != nil {
		return err
	}
	err = s.readNodes(ctx, d, root != "")
	var drift *DriftError
	if errors.As(err, &drift) {
		s.Findings = append(s.Findings, nodeFinding(drift))
		return nil
	}
	return err
}

// readNodes reads the default schedulers, and this node's files if onNode. The state is complete if
// the error is a [*DriftError].
func (s *Status) readNodes(ctx context.Context, d Deps, onNode bool) (err error) {
	if onNode {
		if s.Here, err = d.here(); err != nil {
			return err
		}
	}
	if err := d.nodes(ctx, s); err != nil {
		s.Unknown = append(s.Unknown, err.Error())
	}
	if here := s.Here; here != nil && (len(here.Drift) > 0 || here.State == staticpod.Started) {
		return &DriftError{Here: here}
	}
	return nil
}

func (d Deps) nodes(ctx context.Context, s *Status) error {
	pods, err := d.schedulerPods(ctx)
	if err != nil {
		return err
	}
	leader, _ := d.leader(ctx, pods) // "" if it cannot be read: the rest of the status does not need it
	for _, pod := range pods {
		n := NodeStatus{Node: pod.Spec.NodeName, Replacement: pod.Annotations[staticpod.AnnotationReplacement]}
		n.Replaced = n.Replacement != ""
		if c := kubeapi.DefaultScheduler(&pod); c != nil {
			n.Image = c.Image
			if status := podstatus.StatusOf(&pod, c.Name); status != nil {
				n.Image, n.Ready = status.Image, status.Ready
			}
		}
		n.Leads = leader == n.Node
		s.Nodes = append(s.Nodes, n)
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Node, b.Node) })
	return nil
}

// changes describes the files that differ.
func (h *HereStatus) changes() (list []string) {
	for _, d := range h.Drift {
		list = append(list, d.Path+": "+d.What)
	}
	return list
}

// here compares this node's files with the files that pmk-sched wrote.
func (d Deps) here() (*HereStatus, error) {
	b, err := staticpod.Current(d.Files)
	if b == nil {
		return nil, err
	}
	h := &HereStatus{Node: b.Node, State: b.State, Image: b.Image, Since: b.Updated, Backup: b.Dir()}
	if b.State == staticpod.Started {
		h.Step = b.Step
		return h, nil
	}
	for i := range b.Files {
		if err := d.drift(h, b, &b.Files[i]); err != nil {
			return nil, err
		}
	}
	config, err := d.Files.Read(b.ConfigFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.Drift = append(h.Drift, Drift{Path: b.ConfigFile, What: "the configuration is missing"})
	case err != nil:
		return nil, err
	case !strings.HasPrefix(staticpod.Hash(config.Data), b.ConfigHash):
		h.Drift = append(h.Drift, Drift{Path: b.ConfigFile, What: "the configuration was edited"})
	}
	return h, nil
}
