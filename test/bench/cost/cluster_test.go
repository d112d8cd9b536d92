//go:build linux

package cost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

const (
	// Each team is a namespace with a quota.
	teams    = 10
	gangSize = 10
	gangs    = pods / teams / gangSize // of a team and a profile
	regions  = 4
	zones    = 4 // of a region
	// appNamespace has the AppGroups and the pods that others depend on.
	appNamespace, topologyName = "apps", "network"
	gpuResource                = "example.com/gpu"
	atOnce                     = 20
)

var (
	definitions   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	podGroups     = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	elasticQuotas = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "elasticquotas"}
	topologies    = schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"}
	latencies     = schema.GroupVersionResource{Group: "network.example.com", Version: "v1alpha1", Resource: "networkmetrics"}
	appGroups     = schema.GroupVersionResource{Group: "appgroup.diktyo.x-k8s.io", Version: "v1alpha1", Resource: "appgroups"}
	networks      = schema.GroupVersionResource{Group: "networktopology.diktyo.x-k8s.io", Version: "v1alpha1", Resource: "networktopologies"}
)

func teamNames() (names []string) {
	for team := range teams {
		names = append(names, fmt.Sprintf("team-%d", team))
	}
	return names
}

// object is the content of a custom resource's object.
type object = map[string]any

// creator creates objects of custom resources.
type creator struct {
	b      *testing.B
	client dynamic.Interface
	group  errgroup.Group
}

// create creates an object in a namespace, or a cluster-wide one. It tries again as long as the API server does not serve a new resource.
func (c *creator) create(r schema.GroupVersionResource, kind, namespace, name string, content object) {
	content["apiVersion"], content["kind"] = r.GroupVersion().String(), kind
	content["metadata"] = object{"name": name}
	c.group.Go(func() error { return c.post(r, namespace, &unstructured.Unstructured{Object: content}) })
}

func (c *creator) post(r schema.GroupVersionResource, namespace string, u *unstructured.Unstructured) error {
	return c.try(func() error {
		_, err := c.client.Resource(r).Namespace(namespace).Create(c.b.Context(), u, metav1.CreateOptions{})
		return err
	})
}

// try tries again for a while: on a busy machine a request may take too long, and succeed all the same.
func (c *creator) try(create func() error) error {
	var err error
	for range 100 {
		if err = create(); err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		select {
		case <-c.b.Context().Done():
			return c.b.Context().Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("create an object: %w", err)
}

// define creates the resources of a file.
func (c *creator) define(name string) {
	c.b.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		c.b.Fatal(err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4<<10); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = c.post(definitions, "", u)
		}
		if err != nil {
			c.b.Fatal(err)
		}
	}
}

// createCluster creates all that pods and plugins need.
func (x *bench) createCluster(b *testing.B) {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", x.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	c := &creator{b: b, client: client}
	c.group.SetLimit(atOnce)
	for _, plugin := range []string{"coscheduling", "elasticquota", "numaaware", "networkaware"} {
		c.define("../../../scheduler/plugins/" + plugin + "/testdata/crd.yaml")
	}
	c.define("testdata/network.yaml")
	x.Namespace(b.Context(), b, appNamespace)
	for i := range nodes {
		c.group.Go(func() error {
			return c.try(func() error {
				_, err := x.Kube.CoreV1().Nodes().Create(b.Context(), node(i), metav1.CreateOptions{})
				return err
			})
		})
		c.create(topologies, "NodeResourceTopology", "", nodeName(i), topology())
		c.create(latencies, "NetworkMetric", "", nodeName(i), object{"status": object{"latencyMilliseconds": float64(1+i%97) / 10}})
	}
	for _, team := range teamNames() {
		x.Namespace(b.Context(), b, team)
		c.create(elasticQuotas, "ElasticQuota", team, "quota", object{"spec": object{"min": object{"cpu": "1000", "memory": "1000Gi"}, "max": object{"cpu": "2000", "memory": "2000Gi"}}})
		for gang := range gangs {
			for _, profile := range []string{bundled, native} {
				c.create(podGroups, "PodGroup", team, gangName(profile, gang), object{"spec": object{"minMember": int64(gangSize), "scheduleTimeoutSeconds": int64(600)}})
			}
			x.createApp(b, c, team, gang)
		}
	}
	c.create(networks, "NetworkTopology", appNamespace, topologyName, object{"spec": object{"weights": []any{object{"name": "UserDefined", "topologyList": []any{
		object{"topologyKey": corev1.LabelTopologyRegion, "originList": origins("region", regions, 20)},
		object{"topologyKey": corev1.LabelTopologyZone, "originList": origins("zone", regions*zones, 5)},
	}}}}})
	if err := c.group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// createApp creates the AppGroup of a gang, whose pods depend on one that has a node.
func (x *bench) createApp(b *testing.B, c *creator, team string, gang int) {
	workload := func(name string) object {
		return object{"kind": "Deployment", "apiVersion": "apps/v1", "namespace": team, "name": name, "selector": name}
	}
	name := appName(team, gang)
	c.create(appGroups, "AppGroup", appNamespace, name, object{"spec": object{"numMembers": int64(2), "topologySortingAlgorithm": "KahnSort", "workloads": []any{
		object{"workload": workload("web"), "dependencies": []any{object{"workload": workload("db"), "maxNetworkCost": int64(100)}}},
		object{"workload": workload("db")},
	}}})
	db := controlplane.Filling(controlplane.Pod("none", "", name))
	db.Labels, db.Spec.NodeSelector, db.Spec.NodeName = appLabels(name, "db"), nil, nodeName(gang)
	c.group.Go(func() error {
		return c.try(func() error {
			_, err := x.Kube.CoreV1().Pods(appNamespace).Create(b.Context(), db, metav1.CreateOptions{})
			return err
		})
	})
}

func appLabels(group, workload string) map[string]string {
	return map[string]string{appGroups.Group: group, appGroups.Group + ".workload": workload}
}

func appName(team string, gang int) string { return fmt.Sprintf("%s-%d", team, gang) }

func gangName(profile string, gang int) string { return fmt.Sprintf("%s-%d", profile, gang) }

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// node returns a node with room for many pods, a price, a region and a zone.
func node(i int) *corev1.Node {
	region := i % regions
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
		gpuResource: resource.MustParse("4000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			corev1.LabelHostname: nodeName(i), "pmk-sched.io/price": fmt.Sprintf("0.%02d", 10+i%80),
			corev1.LabelTopologyRegion: fmt.Sprintf("region-%02d", region), corev1.LabelTopologyZone: fmt.Sprintf("zone-%02d", region*zones+i/regions%zones),
		}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// topology returns the content of the NodeResourceTopology of a node with two zones.
func topology() object {
	var all []any
	for z := range 2 {
		amount := func(name, value string) object {
			return object{"name": name, "capacity": value, "allocatable": value, "available": value}
		}
		all = append(all, object{"name": fmt.Sprintf("node-%d", z), "type": "Node", "resources": []any{amount("cpu", "8"), amount("memory", "32Gi")}})
	}
	return object{"zones": all, "attributes": []any{
		object{"name": "topologyManagerPolicy", "value": "single-numa-node"}, object{"name": "topologyManagerScope", "value": "container"},
	}}
}

// origins returns the costs between the places of a kind.
func origins(kind string, count, price int) (all []any) {
	for from := range count {
		var costs []any
		for to := range count {
			if to != from {
				costs = append(costs, object{"destination": fmt.Sprintf("%s-%02d", kind, to), "networkCost": int64(price)})
			}
		}
		all = append(all, object{"origin": fmt.Sprintf("%s-%02d", kind, from), "costList": costs})
	}
	return all
}

// createPods creates the pods of all teams: in turn a gang for each profile. The scheduler takes them in the order of their names.
func (x *bench) createPods(ctx context.Context, b *testing.B, profiles map[string]plugin, gpus bool) {
	b.Helper()
	for _, team := range teamNames() {
		var all []*corev1.Pod
		for gang := range gangs {
			for _, profile := range []string{none, bundled, native} {
				if _, measured := profiles[profile]; !measured && profile != none {
					continue
				}
				for range gangSize {
					all = append(all, newPod(team, profile, gang, fmt.Sprintf("pod-%04d", len(all)), gpus))
				}
			}
		}
		x.Create(ctx, b, team, all...)
	}
}

// newPod returns a pod of a gang. Those of no plugin have no group.
func newPod(team, profile string, gang int, name string, gpus bool) *corev1.Pod {
	pod := controlplane.Filling(controlplane.Pod(profile, "", name))
	pod.Spec.NodeSelector = nil
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	if gpus {
		requests[gpuResource] = resource.MustParse("500")
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: requests}
	if profile != none {
		pod.Labels = appLabels(appName(team, gang), "web")
		pod.Labels["scheduling.x-k8s.io/pod-group"] = gangName(profile, gang)
	}
	return pod
}
