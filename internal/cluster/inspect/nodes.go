package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// objectPage is the page size for node or pod lists.
	objectPage = 50
	// maxWorkers bounds the nodes that are read to identify a hosted control plane of unknown kind.
	maxWorkers = 500
)

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
	const examples = 3
	found := map[string]*KubeletCount{}
	err := kubeapi.ReadTable(ctx, d.core.RESTClient(), "", "nodes", []string{"Name", "Version"}, func(cells []string) {
		name, version := cells[0], cells[1]
		kubelet := found[version]
		if kubelet == nil {
			kubelet = &KubeletCount{Version: version, Examples: []string{}}
			found[version] = kubelet
		}
		kubelet.Count++
		if len(kubelet.Examples) < examples {
			kubelet.Examples = append(kubelet.Examples, name)
		}
	})
	return found, err
}

// controlPlane finds the control-plane nodes: by their labels, and by the default scheduler's
// static pods.
func (d *detector) controlPlane(ctx context.Context) {
	found := map[string]corev1.Node{}
	if d.nodesListed {
		d.labelledNodes(ctx, found)
	}
	d.schedulerNodes(ctx, found)
	if !d.nodesListed {
		return
	}
	if len(found) == 0 {
		d.traits.nodeless = len(d.unlabelled) == 0
		if d.workers(ctx); d.traits.nodeless && d.info.Nodes.Count > 0 && !d.isProduct() {
			d.serverNodes(ctx, found)
		}
		if len(found) == 0 {
			return
		}
		d.traits.nodeless = false
	}
	nodes := slices.SortedFunc(maps.Values(found), func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	d.traits.addNodes(nodes)
	d.describeControlPlane(nodes)
}

// labelledNodes adds the nodes with a control-plane label.
func (d *detector) labelledNodes(ctx context.Context, found map[string]corev1.Node) {
	for _, key := range kubeapi.ControlPlaneLabels() {
		nodes, truncated, err := d.listNodes(ctx, key, d.o.MaxControlPlaneNodes)
		if err != nil {
			d.warnUnread(err, "list nodes with label "+key, "control-plane nodes with that label are unknown")
			continue
		}
		if truncated {
			d.info.ControlPlane.Truncated = true
			d.warn("more than %d nodes have the label %s: the others were not inspected", d.o.MaxControlPlaneNodes, key)
		}
		for _, node := range nodes {
			found[node.Name] = node
		}
	}
}

// schedulerNodes adds the nodes without a label that run the default scheduler in a static pod.
func (d *detector) schedulerNodes(ctx context.Context, found map[string]corev1.Node) {
	pods, err := kubeapi.SystemSchedulers(ctx, d.core, slices.Collect(maps.Keys(found)))
	if err != nil {
		if len(found) == 0 { // otherwise the pods of these nodes are read, with a warning of their own
			d.warnUnread(err, "list pods in kube-system", "the default scheduler's pod is unknown")
		}
		return
	}
	d.unlabelled = pods
	for i := range pods {
		name := pods[i].Spec.NodeName
		if _, known := found[name]; known || name == "" || !d.nodesListed {
			continue
		}
		node, err := d.core.Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			d.warnUnread(err, "get node "+name, "it runs a default scheduler, and is left out of the control-plane nodes")
			continue
		}
		found[name] = *node
	}
}

// workers collects the traits of a cluster without control-plane nodes, by which its distribution
// is identified: page by page, until one is, and at most maxWorkers nodes.
func (d *detector) workers(ctx context.Context) {
	options := metav1.ListOptions{Limit: objectPage}
	for page, err := range kubeapi.Pages(ctx, d.core.Nodes().List, options) {
		if err != nil {
			d.warnUnread(err, "list nodes", "their labels, which can identify the distribution, are unknown")
			return
		}
		d.traits.addNodes(page.Items)
		if d.workersRead += len(page.Items); d.workersRead >= maxWorkers {
			return
		}
		if d.isProduct() {
			return
		}
	}
}

// isProduct reports whether the traits identify a distribution whose control plane need not be on
// nodes.
func (d *detector) isProduct() bool {
	row, _ := identifyBy(d.traits, "")
	return row.layout == LayoutManaged || row.agentless
}

// listNodes lists at most limit whole nodes that have a label ("" for any).
func (d *detector) listNodes(ctx context.Context, label string,
	limit int) (nodes []corev1.Node, truncated bool, err error) {
	options := metav1.ListOptions{LabelSelector: label, Limit: int64(min(limit, objectPage))}
	for page, err := range kubeapi.Pages(ctx, d.core.Nodes().List, options) {
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
		if len(nodes) == limit && page.Continue != "" {
			return nodes, true, nil
		}
	}
	return nodes, false, nil
}

func (d *detector) describeControlPlane(nodes []corev1.Node) {
	plane := &d.info.ControlPlane
	plane.Count = len(nodes)
	most := 0
	for _, key := range kubeapi.ControlPlaneLabels() {
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
	var unlabelled []string
	for _, node := range nodes {
		described := describeNode(node)
		value, ok := node.Labels[plane.LabelKey]
		described.Unlabelled = !ok
		if plane.LabelKey == "" {
			unlabelled = append(unlabelled, node.Name)
		} else if !ok || value != plane.LabelValue {
			d.warn(
				"control-plane node %s does not have the label %s=%s of the others: a node selector with it excludes the node",
				node.Name, plane.LabelKey, plane.LabelValue)
		}
		plane.Nodes = append(plane.Nodes, described)
	}
	if len(unlabelled) > 0 {
		d.warn("control-plane nodes without any of the labels %s: %s", strings.Join(kubeapi.ControlPlaneLabels(), ", "),
			strings.Join(unlabelled, ", "))
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
		Ready:          kubeapi.NodeReady(&node),
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
	return described
}
