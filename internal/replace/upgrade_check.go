package replace

import (
	"context"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// UpgradeReport is the result of `upgrade check`.
type UpgradeReport struct {
	// Release of the API server.
	Release    string              `json:"release"`
	Schedulers []lifecycle.Upgrade `json:"schedulers"`
	Nodes      []NodeUpgrade       `json:"nodes,omitempty"`
	// Unknown lists facts that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// NodeUpgrade is a control-plane node's default scheduler, which is or was replaced.
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
	// Drift lists differences between this node's files and the files of the replacement.
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

// CheckUpgrade reports the changes that upgrades would make. If the spec has a name, it reports
// that scheduler, else all schedulers in namespace, or in all namespaces if it is empty, and the
// nodes' replaced default schedulers. It changes nothing.
func CheckUpgrade(
	ctx context.Context, s *session.Session, o lifecycle.UpgradeOptions, namespace string,
) (*UpgradeReport, error) {
	info, list, err := lifecycle.CheckUpgrades(ctx, s, o, namespace)
	if err != nil {
		return nil, err
	}
	report := &UpgradeReport{Release: info.Release.String(), Schedulers: list}
	if o.Spec.Name != "" {
		return report, nil
	}
	return report, report.checkNodes(ctx, s, info)
}

// checkNodes adds the control-plane nodes whose default scheduler is replaced, and this one if it
// was.
func (r *UpgradeReport) checkNodes(ctx context.Context, s *session.Session, info *inspect.Info) error {
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	status := &Status{}
	if err := status.readDefault(ctx, s, cfg); err != nil {
		return err
	}
	r.Unknown = append(r.Unknown, status.Unknown...)
	for _, n := range status.Nodes {
		here := status.Here
		if here != nil && here.Node != n.Node {
			here = nil
		}
		if n.Replaced || here != nil {
			r.Nodes = append(r.Nodes, describeNode(n, here, info))
		}
	}
	slices.SortFunc(r.Nodes, byNode)
	return ctx.Err()
}

// byNode orders nodes for the upgrade: by name, with the leading scheduler's node last, so that the
// lease changes hands once.
func byNode(a, b NodeUpgrade) int {
	switch {
	case a.Leads == b.Leads:
		return strings.Compare(a.Node, b.Node)
	case a.Leads:
		return 1
	}
	return -1
}

// describeNode compares a node's default scheduler with the API server's release. here is the state
// of its files, nil on another node.
func describeNode(n NodeStatus, here *HereStatus, info *inspect.Info) NodeUpgrade {
	u := NodeUpgrade{Node: n.Node, Image: n.Image, Replaced: n.Replaced, Leads: n.Leads}
	if release, ok := inspect.ImageRelease(n.Image); ok {
		u.Release = release.String()
		u.Due = release.Compare(info.Release) != 0
	}
	if here != nil {
		u.Drift = here.changes()
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
