package session

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// UpgradeReport is the result of `upgrade --check`.
type UpgradeReport struct {
	// Release of the API server.
	Release    string        `json:"release"`
	Schedulers []Upgrade     `json:"schedulers"`
	Nodes      []NodeUpgrade `json:"nodes,omitempty"`
	// Unknown lists facts that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// Upgrade describes the upgrade of one scheduler. The fields after Due are set only if it is due.
type Upgrade struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Release and Image are deployed, Target is the release to upgrade to.
	Release string `json:"release"`
	Image   string `json:"image"`
	Target  string `json:"target"`
	Due     bool   `json:"due"`
	// NewImage is the image to deploy; Build reports whether upgrade builds it, with Plugins.
	NewImage string   `json:"newImage,omitempty"`
	Build    bool     `json:"build,omitempty"`
	Plugins  []string `json:"plugins,omitempty"`
	// From and To are config APIs. Changes and Warnings describe the conversion of the
	// configuration.
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Changes  []string `json:"changes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// KnownProblems are the known problems of Target that the scheduler meets.
	KnownProblems []string `json:"knownProblems,omitempty"`
	// Blocked is the reason why the scheduler cannot be upgraded, and Needs are remedies.
	Blocked string   `json:"blocked,omitempty"`
	Needs   []string `json:"needs,omitempty"`
	// Command upgrades it.
	Command string `json:"command,omitempty"`
}

// NodeUpgrade is the default scheduler of a control-plane node, which is or was replaced.
type NodeUpgrade struct {
	Node string `json:"node"`
	// Image is the running image. Release is the release in its tag, or empty if the tag names no
	// release.
	Image    string `json:"image"`
	Release  string `json:"release,omitempty"`
	Replaced bool   `json:"replaced"`
	// Leads reports whether it holds the lease: that node is the last one to upgrade.
	Leads bool `json:"leads"`
	Due   bool `json:"due"`
	// Drift lists differences of the files of this node from the files of the replacement.
	Drift []string `json:"drift,omitempty"`
	// Needs is the action to take on the node.
	Needs string `json:"needs,omitempty"`
}

// Due returns how many schedulers are due, and how many there are.
func (r *UpgradeReport) Due() (due, all int) {
	for _, s := range r.Schedulers {
		if s.Due || s.Blocked != "" {
			due++
		}
	}
	for _, n := range r.Nodes {
		if n.Due {
			due++
		}
	}
	return due, len(r.Schedulers) + len(r.Nodes)
}

// CheckUpgrade reports the changes that Upgrade would make. If the spec has a name, it reports that
// scheduler, else all schedulers in namespace, or in all namespaces if it is empty, and the
// replaced default schedulers of the nodes. It changes nothing.
func (s *Session) CheckUpgrade(ctx context.Context, o UpgradeOptions, namespace string) (*UpgradeReport, error) {
	cfg, deps, info, err := s.inspectForUpgrade(ctx, o.Spec)
	if err != nil {
		return nil, err
	}
	report := &UpgradeReport{Release: info.Release.String(), Schedulers: []Upgrade{}}
	if o.Spec.Name != "" {
		one, err := s.checkUpgrade(ctx, cfg, deps, info, o)
		if err == nil {
			report.Schedulers = append(report.Schedulers, *one)
		}
		return report, err
	}
	for _, d := range info.Scheduler.Deployed {
		if namespace != "" && namespace != d.Namespace {
			continue
		}
		one, err := s.checkNamed(ctx, cfg, deps, d, o)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			one = &Upgrade{Name: d.Name, Namespace: d.Namespace, Release: d.Release, Image: d.Image, Target: report.Release, Due: d.Release != report.Release}
			if one.Due {
				one.Blocked, one.Needs = err.Error(), problem.Hints(err)
			}
		}
		report.Schedulers = append(report.Schedulers, *one)
	}
	return report, s.checkNodes(ctx, info, report)
}

// checkNamed inspects the cluster for one of several schedulers: the ports in use depend on it.
func (s *Session) checkNamed(ctx context.Context, cfg *rest.Config, deps deploy.Deps, d inspect.DeployedScheduler, o UpgradeOptions) (*Upgrade, error) {
	o.Spec = o.Spec.Named(d.Name, d.Namespace)
	info, err := s.Session.Inspect(ctx, cfg, d.Name, d.Namespace)
	if err != nil {
		return nil, err
	}
	return s.checkUpgrade(ctx, cfg, deps, info, o)
}

// checkUpgrade reports the upgrade of one scheduler. If it cannot be upgraded, the reason is part
// of the report.
func (s *Session) checkUpgrade(ctx context.Context, cfg *rest.Config, deps deploy.Deps, info *inspect.Info, o UpgradeOptions) (*Upgrade, error) {
	u, err := s.newUpgrade(ctx, cfg, deps, info, o)
	if err != nil {
		return nil, err
	}
	if !u.report.Due {
		return u.report, nil
	}
	err = u.plan(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		u.report.Blocked, u.report.Needs = err.Error(), problem.Hints(err)
	}
	return u.report, nil
}

// checkNodes adds the control-plane nodes whose default scheduler is replaced, and this one if it was.
func (s *Session) checkNodes(ctx context.Context, info *inspect.Info, report *UpgradeReport) error {
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	status := &Status{}
	if err := s.defaultStatus(ctx, cfg, status); err != nil {
		return err
	}
	report.Unknown = append(report.Unknown, status.Unknown...)
	for _, n := range status.Nodes {
		here := status.Here
		if here != nil && here.Node != n.Node {
			here = nil
		}
		if n.Replaced || here != nil {
			report.Nodes = append(report.Nodes, describeNode(n, here, info))
		}
	}
	slices.SortFunc(report.Nodes, byNode)
	return ctx.Err()
}

// byNode orders nodes for the upgrade: by name, with the node of the leading scheduler last, so
// that the lease changes hands once.
func byNode(a, b NodeUpgrade) int {
	switch {
	case a.Leads == b.Leads:
		return strings.Compare(a.Node, b.Node)
	case a.Leads:
		return 1
	}
	return -1
}

// describeNode compares the default scheduler of a node with the release of the API server. here is the state of its files, nil on another node.
func describeNode(n replace.NodeStatus, here *replace.HereStatus, info *inspect.Info) NodeUpgrade {
	u := NodeUpgrade{Node: n.Node, Image: n.Image, Replaced: n.Replaced, Leads: n.Leads}
	if release, ok := inspect.ImageRelease(n.Image); ok {
		u.Release = release.String()
		u.Due = release.Compare(info.Release) != 0
	}
	if here != nil {
		for _, d := range here.Drift {
			u.Drift = append(u.Drift, d.Path+": "+d.What)
		}
		if here.State == staticpod.Started {
			u.Drift = append(u.Drift, "the replacement stopped at step "+here.Step)
		}
		u.Due = u.Due || len(u.Drift) > 0
	}
	if u.Due {
		u.Needs = "run `pmk-sched upgrade --default` on the node"
	}
	return u
}
