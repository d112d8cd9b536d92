package ask

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// eachNode reads the nodes of the cluster.
func (i *inquiry) eachNode(ctx context.Context, do func(*corev1.Node)) error {
	options := metav1.ListOptions{Limit: pageSize, ResourceVersion: "0"}
	for page, err := range kubeapi.Pages(ctx, i.e.kube.CoreV1().Nodes().List, options) {
		if err != nil {
			return kubeapi.Explain("read the nodes", err)
		}
		for n := range page.Items {
			do(&page.Items[n])
		}
	}
	return nil
}

// moreNodes tries one more node like one of each kind of nodes.
func (i *inquiry) moreNodes(ctx context.Context, _ *outcome) (found []Change, err error) {
	count, example := map[string]int{}, map[string]string{}
	err = i.eachNode(ctx, func(node *corev1.Node) {
		kind := kindOf(node)
		if count[kind]++; example[kind] == "" || node.Name < example[kind] {
			example[kind] = node.Name
		}
	})
	if err != nil {
		return nil, err
	}
	for _, kind := range mostFrequent(count, mostTemplates, func(kind string) string { return kind }) {
		copies, err := i.copyNode(ctx, example[kind])
		if err != nil {
			return found, err
		}
		if copies == nil {
			continue
		}
		more, err := i.tried(ctx, "node", "one more node like "+example[kind], variant{others: copies})
		if found = append(found, more...); err != nil {
			return found, err
		}
	}
	return found, nil
}

// kindOf returns a text that nodes of the same kind have in common.
func kindOf(node *corev1.Node) string {
	text := node.Labels[corev1.LabelInstanceTypeStable]
	for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
		amount := node.Status.Allocatable[name]
		text += fmt.Sprintf(" %s=%s", name, amount.String())
	}
	for _, taint := range node.Spec.Taints {
		text += " " + taint.ToString()
	}
	return text
}

// copyNode returns a copy of a node with the pods that every such node has, as `simulate nodes`
// adds it. It is nil if the cluster has no such node anymore.
func (i *inquiry) copyNode(ctx context.Context, name string) ([]scenario.Object, error) {
	s, err := scenario.Nodes([]scenario.Template{{Name: name, Count: 1, First: 1}})
	if err != nil {
		return nil, err
	}
	var originals []scenario.Object
	for _, of := range []struct{ apiVersion, kind, path string }{
		{"v1", "Node", "/api/v1/nodes/"}, {"storage.k8s.io/v1", "CSINode", "/apis/storage.k8s.io/v1/csinodes/"},
	} {
		fields, err := i.v.readObject(ctx, of.path+url.PathEscape(name))
		if err != nil {
			return nil, err
		}
		if fields == nil && of.kind == "Node" {
			return nil, nil
		}
		if fields != nil {
			kind, version := snapshot.Find(snapshot.Kinds(), of.apiVersion, of.kind)
			originals = append(originals, scenario.Object{Kind: kind, Version: version, Fields: kind.Strip(fields)})
		}
	}
	pods, version := snapshot.Find(snapshot.Kinds(), "v1", "Pod")
	list, err := i.e.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return nil, kubeapi.Explain("read the pods of node "+name, err)
	}
	for p := range list.Items {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[p])
		if err != nil {
			return nil, fmt.Errorf("read a pod of node %s: %w", name, err)
		}
		delete(child(fields, "metadata"), "managedFields")
		originals = append(originals, scenario.Object{Kind: pods, Version: version, Fields: fields})
	}
	copies, _ := s.Copies(originals)
	for _, c := range copies {
		child(c.Fields, "metadata")["uid"] = string(uuid.NewUUID())
		c.Fields["apiVersion"], c.Fields["kind"] = snapshot.APIVersion(c.Kind.Group, c.Version), c.Kind.Name
	}
	return copies, nil
}
