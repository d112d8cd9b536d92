package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Page sizes of lists. A row of a table is small, a node or pod is several
// kilobytes.
const (
	tablePage  = 500
	objectPage = 50
)

// tableAccept requests a list as a table. A node is then about 200 bytes instead
// of ten thousand.
const tableAccept = "application/json;as=Table;g=meta.k8s.io;v=v1"

// nodeTable is the part of a metav1.Table that is read.
type nodeTable struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Columns []column `json:"columnDefinitions"`
	Rows    []struct {
		Cells []any `json:"cells"`
	} `json:"rows"`
}

type column struct {
	Name string `json:"name"`
}

// index returns the index of a column.
func (t *nodeTable) index(name string) (int, error) {
	i := slices.Index(t.Columns, column{Name: name})
	if i < 0 {
		return 0, fmt.Errorf("read table of nodes: no column %s", name)
	}
	return i, nil
}

// countNodes counts the nodes by kubelet version.
func (d *detector) countNodes(ctx context.Context) {
	count, err := d.kubelets(ctx)
	if apierrors.IsResourceExpired(err) {
		// The list expired between two pages.
		count, err = d.kubelets(ctx)
	}
	if err != nil {
		d.warnUnread(err, "list nodes", "their number and the versions of their kubelets are unknown")
		return
	}
	d.nodesListed = true
	for _, kubelet := range count {
		d.info.Nodes.Count += kubelet.Count
		d.info.Nodes.Kubelets = append(d.info.Nodes.Kubelets, *kubelet)
	}
	slices.SortFunc(d.info.Nodes.Kubelets, func(a, b KubeletCount) int {
		// An invalid version is the zero release and comes last.
		releaseA, _ := versions.FromServer(a.Version)
		releaseB, _ := versions.FromServer(b.Version)
		return cmp.Or(releaseB.Compare(releaseA), cmp.Compare(a.Version, b.Version))
	})
}

func (d *detector) kubelets(ctx context.Context) (map[string]*KubeletCount, error) {
	found := map[string]*KubeletCount{}
	for next := ""; ; {
		page, err := d.nodePage(ctx, next)
		if err != nil {
			return nil, err
		}
		if err := page.countInto(found); err != nil {
			return nil, err
		}
		if next = page.Metadata.Continue; next == "" {
			return found, nil
		}
	}
}

func (t *nodeTable) countInto(found map[string]*KubeletCount) error {
	const examples = 3
	name, errName := t.index("Name")
	version, errVersion := t.index("Version")
	if err := errors.Join(errName, errVersion); err != nil {
		return err
	}
	for _, row := range t.Rows {
		if max(name, version) >= len(row.Cells) {
			return fmt.Errorf("read table of nodes: a row has %d cells for %d columns", len(row.Cells), len(t.Columns))
		}
		text := fmt.Sprint(row.Cells[version])
		kubelet := found[text]
		if kubelet == nil {
			kubelet = &KubeletCount{Version: text, Examples: []string{}}
			found[text] = kubelet
		}
		kubelet.Count++
		if len(kubelet.Examples) < examples {
			kubelet.Examples = append(kubelet.Examples, fmt.Sprint(row.Cells[name]))
		}
	}
	return nil
}

func (d *detector) nodePage(ctx context.Context, next string) (*nodeTable, error) {
	request := d.core.RESTClient().Get().Resource("nodes").SetHeader("Accept", tableAccept).
		Param("includeObject", string(metav1.IncludeNone)).Param("limit", strconv.Itoa(tablePage))
	if next != "" {
		request = request.Param("continue", next)
	}
	raw, err := rawResult(request.Do(ctx))
	if err != nil {
		return nil, err
	}
	var page nodeTable
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, fmt.Errorf("read table of nodes: %w", err)
	}
	if page.Kind != "Table" {
		return nil, fmt.Errorf("read table of nodes: the response is a %q", page.Kind)
	}
	return &page, nil
}

// controlPlaneLabels returns the labels of control-plane nodes in the order of
// preference: kubeadm's, the older one (which PMK keeps), microk8s'.
func controlPlaneLabels() []string {
	return []string{
		"node-role.kubernetes.io/control-plane",
		"node-role.kubernetes.io/master",
		"node.kubernetes.io/microk8s-controlplane",
	}
}

// controlPlane finds the control-plane nodes by their labels.
func (d *detector) controlPlane(ctx context.Context) {
	if !d.nodesListed {
		return
	}
	found := map[string]corev1.Node{}
	for _, key := range controlPlaneLabels() {
		nodes, truncated, err := d.listNodes(ctx, key, d.o.MaxControlPlaneNodes)
		if err != nil {
			d.warnUnread(err, "list nodes with label "+key, "control-plane nodes with that label are unknown")
			continue
		}
		if truncated {
			d.warn("more than %d nodes have the label %s: the others were not inspected", d.o.MaxControlPlaneNodes, key)
		}
		for _, node := range nodes {
			found[node.Name] = node
		}
	}
	if len(found) == 0 {
		// Workers identify the distribution too.
		nodes, _, err := d.listNodes(ctx, "", 5)
		if err == nil {
			d.traits.addNodes(nodes)
		}
		return
	}
	nodes := make([]corev1.Node, 0, len(found))
	for _, node := range found {
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	d.traits.addNodes(nodes)
	d.describeControlPlane(nodes)
}

// listNodes lists at most limit whole nodes that have a label ("" for any).
func (d *detector) listNodes(ctx context.Context, label string, limit int) (nodes []corev1.Node, truncated bool, err error) {
	options := metav1.ListOptions{LabelSelector: label, Limit: int64(min(limit, objectPage))}
	for {
		page, err := d.core.Nodes().List(ctx, options)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Items {
			// Image lists are large and not needed.
			page.Items[i].Status.Images = nil
			page.Items[i].ManagedFields = nil
		}
		nodes = append(nodes, page.Items...)
		if len(nodes) > limit {
			return nodes[:limit], true, nil
		}
		if page.Continue == "" {
			return nodes, false, nil
		}
		if len(nodes) == limit {
			return nodes, true, nil
		}
		options.Continue = page.Continue
	}
}

func (d *detector) describeControlPlane(nodes []corev1.Node) {
	plane := &d.info.ControlPlane
	plane.Count = len(nodes)
	most := 0
	for _, key := range controlPlaneLabels() {
		values := map[string]int{}
		total := 0
		for _, node := range nodes {
			if value, ok := node.Labels[key]; ok {
				values[value]++
				total++
			}
		}
		if total > most {
			most, plane.LabelKey, plane.LabelValue = total, key, mostFrequent(values)
		}
	}
	for _, node := range nodes {
		if value, ok := node.Labels[plane.LabelKey]; !ok || value != plane.LabelValue {
			d.warn("control-plane node %s does not have the label %s=%s of the others: a node selector with it excludes the node", node.Name, plane.LabelKey, plane.LabelValue)
		}
		plane.Nodes = append(plane.Nodes, describeNode(node))
	}
}

func mostFrequent(values map[string]int) string {
	var best string
	for value, count := range values {
		if count > values[best] || (count == values[best] && value < best) {
			best = value
		}
	}
	return best
}

func describeNode(node corev1.Node) ControlPlaneNode {
	described := ControlPlaneNode{
		Name:           node.Name,
		Taints:         []Taint{},
		Architecture:   node.Status.NodeInfo.Architecture,
		OS:             node.Status.NodeInfo.OperatingSystem,
		KubeletVersion: node.Status.NodeInfo.KubeletVersion,
		Unschedulable:  node.Spec.Unschedulable,
	}
	for _, taint := range node.Spec.Taints {
		described.Taints = append(described.Taints, Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
	}
	described.Names = append(described.Names, node.Name)
	for _, address := range node.Status.Addresses {
		described.Names = append(described.Names, address.Address)
		if address.Type == corev1.NodeInternalIP && described.Address == "" {
			described.Address = address.Address
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			described.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	return described
}
