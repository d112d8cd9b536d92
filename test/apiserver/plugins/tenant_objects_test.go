//go:build linux && (cases || releases)

package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Resources of plugins.
var (
	elasticQuotas  = customResource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas")
	podGroups      = customResource("scheduling.x-k8s.io", "v1alpha1", "podgroups")
	nodeTopologies = customResource("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies")
)

func customResource(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// oddValue returns an amount in an object of a plugin. API servers do not parse it.
func (a *attacker) oddValue() any {
	long := []any{"1e-999999999", "1e2000000000", "-1e400", "NaN", "+Inf", "-Inf", "Infinity", "", " ", "1 cpu", int64(-1),
		int64(1 << 62), int64(7), strings.Repeat("9", 1000), "0x10", "1e-300"}
	if a.random.IntN(2) == 0 {
		return pick(a.random, odd())
	}
	if a.random.IntN(50) == 0 {
		return strings.Repeat("1", 1<<20)
	}
	return pick(a.random, long)
}

// oddAmounts returns the amounts of some resources, or of very many.
func (a *attacker) oddAmounts() map[string]any {
	list := map[string]any{}
	if a.random.IntN(8) == 0 {
		for i := range 20_000 {
			list[fmt.Sprint("example.com/r-", i)] = "1"
		}
	}
	for range a.random.IntN(4) {
		name := pick(a.random, []string{"cpu", "memory", "pods", string(gpuMilli), "example.com/mine", "", "Ä/\n"})
		list[name] = a.oddValue()
	}
	return list
}

// quotaNames are the names of the ElasticQuotas that a hostile tenant may change, before and after
// the one of the administrator.
func quotaNames() (names []string) {
	for i := range 20 {
		names = append(names, fmt.Sprint("a-", i), fmt.Sprint("z-", i))
	}
	return names
}

// writeQuota creates an ElasticQuota, changes it, or deletes it. It may allow more than the one of
// the administrator.
func (a *attacker) writeQuota(ctx context.Context) error {
	spec := map[string]any{"min": a.oddAmounts(), "max": a.oddAmounts()}
	if a.random.IntN(2) == 0 {
		spec["max"] = amounts{"cpu": "1000", "memory": "1000Gi", gpuMilli: "100000", "pods": "100000"}.object()
		spec["min"] = pick(a.random, []any{spec["max"], map[string]any{}})
	}
	return a.write(ctx, a.objects.Resource(elasticQuotas).Namespace(a.namespace),
		quotaObject(pick(a.random, append(quotaNames(), "limit", "limit-2")), spec))
}

func (a *attacker) podGroupSpec() map[string]any {
	return map[string]any{
		"minMember":              pick(a.random, []any{int64(1), int64(2), int64(1 << 31), int64(1 << 62), int64(-1), "2"}),
		"scheduleTimeoutSeconds": pick(a.random, []any{int64(1), int64(600), int64(1 << 40), int64(-1 << 62), "x", nil}),
		"other":                  a.oddValue(),
	}
}

func (a *attacker) writePodGroup(ctx context.Context, name string, spec map[string]any) error {
	return a.write(ctx, a.objects.Resource(podGroups).Namespace(a.namespace),
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"name": name}, "spec": spec}})
}

// write creates an object, changes it if it exists, or deletes it.
func (a *attacker) write(ctx context.Context, client dynamic.ResourceInterface,
	object *unstructured.Unstructured) error {
	_, err := client.Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if a.random.IntN(3) == 0 {
		return client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
	}
	patch, err := json.Marshal(map[string]any{"spec": object.Object["spec"]})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// agentConfig returns the configuration of the agent of a node: it may change the status of its
// node and the objects that agents write for it.
func agentConfig(t *testing.T, x *siege) *rest.Config {
	t.Helper()
	node := x.name + "-" + rogue
	agent := &cluster{Plane: x.Plane, name: node}
	change := []string{"update", "patch", "delete", "get"}
	agent.grant(t, node, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, ResourceNames: []string{node}, Verbs: change},
		{APIGroups: []string{nodeTopologies.Group}, Resources: []string{nodeTopologies.Resource},
			ResourceNames: []string{node}, Verbs: change},
		{APIGroups: []string{networkmetrics.Group}, Resources: []string{networkmetrics.Resource},
			ResourceNames: []string{node}, Verbs: change},
		{APIGroups: []string{nodeTopologies.Group, networkmetrics.Group}, Resources: []string{nodeTopologies.Resource,
			networkmetrics.Resource}, Verbs: []string{"create"}},
	})
	config := x.Config()
	config.Impersonate.UserName = node
	return config
}

// actAsAgent sends one request.
func (a *attacker) actAsAgent(ctx context.Context) error {
	node := a.x.name + "-" + rogue
	switch a.random.IntN(4) {
	case 0, 1:
		return a.writeStatus(ctx, node)
	case 2:
		return a.writeMetric(ctx, node)
	default:
		topologies := a.objects.Resource(nodeTopologies)
		patch, err := json.Marshal(a.oddTopology())
		if err != nil {
			return err
		}
		if a.random.IntN(10) == 0 {
			return a.write(ctx, topologies, topologyObject(node))
		}
		_, err = topologies.Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// writeStatus reports resources and labels of the node. The amounts of CPU and memory are such that
// kube-scheduler's own scores do not overflow, which ends the attempt of each pod that the node
// could run (pkg/scheduler/framework/plugins/noderesources/least_allocated.go).
func (a *attacker) writeStatus(ctx context.Context, node string) error {
	allocatable := map[string]any{
		"cpu":    pick(a.random, []string{"0", "1m", "1", "64", "100000", "1e9"}),
		"memory": pick(a.random, []string{"0", "1", "64Mi", "256Gi", "1e12", "1e15"}),
	}
	for range a.random.IntN(3) {
		allocatable[pick(a.random, []string{"pods", string(gpuMilli), string(gpuCount), "example.com/r"})] =
			pick(a.random, append(odd(), "1e12", "1000000000000", "1e15"))
	}
	status := map[string]any{"metadata": map[string]any{"labels": map[string]any{
		"pmk-sched.io/price": pick(a.random, []any{"NaN", "Inf", "1e400", "-1", "1e-300", "0", nil})}},
		"status": map[string]any{"allocatable": allocatable, "capacity": allocatable}}
	patch, err := json.Marshal(status)
	if err != nil {
		return err
	}
	_, err = a.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (a *attacker) writeMetric(ctx context.Context, node string) error {
	bandwidth := fmt.Sprint(a.oddValue())
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "network.example.com/v1alpha1",
		"kind": "NetworkMetric", "metadata": map[string]any{"name": node},
		"status": map[string]any{"bandwidth": bandwidth, "latencyMilliseconds": pick(a.random,
			[]any{1e308, 5e-324, int64(-1), int64(1 << 62)})}}}
	metrics := a.objects.Resource(networkmetrics)
	_, err := metrics.Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if a.random.IntN(10) == 0 {
		return metrics.Delete(ctx, node, metav1.DeleteOptions{})
	}
	patch, err := json.Marshal(map[string]any{"status": object.Object["status"]})
	if err != nil {
		return err
	}
	_, err = metrics.Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// oddTopology returns a topology with few zones, or as many as an object may have.
func (a *attacker) oddTopology() map[string]any {
	zones, each := a.random.IntN(4), 1+a.random.IntN(3)
	switch a.random.IntN(8) {
	case 0:
		zones = 3000
	case 1:
		zones, each = 2, 5000
	}
	var all []any
	for i := range zones {
		var resources []any
		for j := range each {
			name := pick(a.random, []string{"cpu", "memory", string(gpuMilli)})
			if j > 2 {
				name = fmt.Sprint("example.com/r-", j)
			}
			resources = append(resources, map[string]any{"name": name, "capacity": "1", "allocatable": a.shortValue(),
				"available": a.shortValue()})
		}
		all = append(all, map[string]any{"name": fmt.Sprint("z", i), "resources": resources,
			"type": pick(a.random, []string{"Node", "Node", "Core", ""})})
	}
	attribute := func(name string, values ...string) any {
		return map[string]any{"name": name, "value": pick(a.random, values)}
	}
	return map[string]any{
		"zones":            all,
		"topologyPolicies": pick(a.random, []any{nil, []any{"SingleNUMANodePodLevel", "x"}}),
		"attributes": []any{attribute("topologyManagerPolicy", "single-numa-node", "restricted", ""),
			attribute("topologyManagerScope", "pod", "container")},
	}
}

// shortValue is an oddValue that can be in an object thousands of times.
func (a *attacker) shortValue() any {
	return pick(a.random, []any{"1", "0", "-1", "1e18", "9223372036854775807", "1e400", "NaN", "1e-999999999", int64(5)})
}
