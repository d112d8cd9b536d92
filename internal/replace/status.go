package replace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Status is the state of the default schedulers of a cluster and of this node.
type Status struct {
	// Nodes are the control-plane nodes whose default scheduler is a static pod.
	Nodes []NodeStatus `json:"nodes"`
	// Here is the state of this node. It is nil if its default scheduler is not replaced.
	Here *HereStatus `json:"here,omitempty"`
	// Unknown lists the errors about the parts of the status that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// NodeStatus is the default scheduler of one node.
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
	// Step is where an unfinished run stopped.
	Step string `json:"step,omitempty"`
	// Drift lists the files that differ from the files that pmk-sched wrote.
	Drift []Drift `json:"drift,omitempty"`
}

// Drift is one file that differs from the file that pmk-sched wrote.
type Drift struct {
	Path string `json:"path"`
	What string `json:"what"`
	Diff string `json:"diff,omitempty"`
}

// DriftError is returned when files have drifted or a replacement is unfinished.
type DriftError struct{ Here *HereStatus }

// Error lists the files with their diffs.
func (e *DriftError) Error() string {
	var b strings.Builder
	if e.Here.State == staticpod.Started {
		fmt.Fprintf(&b, "the replacement of the default scheduler of node %s is unfinished: it stopped at step %q", e.Here.Node, e.Here.Step)
	} else {
		fmt.Fprintf(&b, "drift: files of the default scheduler of node %s have changed", e.Here.Node)
	}
	for _, d := range e.Here.Drift {
		fmt.Fprintf(&b, "\n%s: %s\n%s", d.Path, d.What, d.Diff)
	}
	return strings.TrimRight(b.String(), "\n")
}

// CheckFailed reports that the status was read, and that there is drift.
func (e *DriftError) CheckFailed() bool { return true }

// Hint returns an instruction for the user.
func (e *DriftError) Hint() string {
	if e.Here.State == staticpod.Started {
		return "run `pmk-sched replace` again with the same flags, or restore the original with `pmk-sched restore`"
	}
	return "run `pmk-sched upgrade --default`, which keeps the configuration, or `pmk-sched replace`; `pmk-sched restore` restores the original"
}

// ReadStatus reads the state of the cluster, and of this node if onNode. The status is complete if the error is a [*DriftError].
func ReadStatus(ctx context.Context, d Deps, onNode bool) (*Status, error) {
	s := &Status{Nodes: []NodeStatus{}}
	var err error
	if onNode {
		if s.Here, err = d.here(); err != nil {
			return nil, err
		}
	}
	if err := d.nodes(ctx, s); err != nil {
		s.Unknown = append(s.Unknown, err.Error())
	}
	if here := s.Here; here != nil && (len(here.Drift) > 0 || here.State == staticpod.Started) {
		return s, &DriftError{Here: here}
	}
	return s, nil
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
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == schedulerContainer {
				n.Image, n.Ready = status.Image, status.Ready
			}
		}
		n.Leads = leader != "" && (len(pods) == 1 || leader == pod.Spec.NodeName)
		s.Nodes = append(s.Nodes, n)
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Node, b.Node) })
	return nil
}

// here compares this node's files with the files that pmk-sched wrote.
func (d Deps) here() (*HereStatus, error) {
	list, err := staticpod.Backups(d.Files)
	if err != nil {
		return nil, err
	}
	b := staticpod.Current(list)
	if b == nil {
		return nil, nil
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

func (d Deps) drift(h *HereStatus, b *staticpod.Backup, s *staticpod.Saved) error {
	current, err := d.Files.Read(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		h.Drift = append(h.Drift, Drift{Path: s.Path, What: "the file is missing"})
		return nil
	}
	if err != nil || staticpod.Hash(current.Data) == s.Written {
		return err
	}
	written, err := b.Load(s, staticpod.WrittenCopy)
	if err != nil {
		return err
	}
	what := "edited after the replacement"
	if s == b.Manifest() && !staticpod.Managed(current.Data) {
		if runsAsWanted(b, current.Data) {
			return nil // the node agent rewrote it, with the configuration that its settings name
		}
		what = "rewritten without the replacement"
		if layout, _ := inspect.LayoutNamed(b.Layout); layout.Rewriter != "" {
			what += ": " + layout.Rewriter + " does that when it starts"
		}
	}
	h.Drift = append(h.Drift, Drift{Path: s.Path, What: what, Diff: staticpod.Diff(written.Data, current.Data)})
	return nil
}

// runsAsWanted reports whether a rewritten manifest runs the image of the replacement with its configuration.
func runsAsWanted(b *staticpod.Backup, text []byte) bool {
	m, err := staticpod.Parse(b.Manifest().Path, text)
	if err != nil || len(b.Files) < 2 {
		return false
	}
	container, err := m.Container(schedulerContainer)
	if err != nil || container.Image != b.Image {
		return false
	}
	args, err := staticpod.Words(container, schedulerContainer)
	config, given := staticpod.Flag(args, "config")
	return err == nil && given && staticpod.OnHost(m.Pod, container, config) == b.ConfigFile
}
