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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// Each team is a namespace with a quota.
	teams    = 10
	gangSize = 10
	// gangs of a team and a profile exist, at most.
	gangs       = many / teams / gangSize
	gpuResource = "example.com/gpu"
	atOnce      = 20
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	podGroups     = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	elasticQuotas = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1",
		Resource: "elasticquotas"}
	topologies = schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2",
		Resource: "noderesourcetopologies"}
	latencies = schema.GroupVersionResource{Group: "network.example.com", Version: "v1alpha1",
		Resource: "networkmetrics"}
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

// create creates an object in a namespace, or a cluster-wide one.
func (c *creator) create(r schema.GroupVersionResource, kind, namespace, name string, content object) {
	content["apiVersion"], content["kind"] = r.GroupVersion().String(), kind
	content["metadata"] = object{"name": name}
	c.group.Go(func() error { return c.post(r, namespace, &unstructured.Unstructured{Object: content}) })
}

func (c *creator) post(r schema.GroupVersionResource, namespace string, u *unstructured.Unstructured) error {
	return c.repeat(func() error {
		_, err := c.client.Resource(r).Namespace(namespace).Create(c.b.Context(), u, metav1.CreateOptions{})
		return err
	})
}

// repeat repeats a request as long as the API server does not serve a new resource, or has no time
// for the request on a busy machine. One without an answer may have created the object.
func (c *creator) repeat(create func() error) error {
	const pause = 100 * time.Millisecond
	expected := func(err error) bool {
		return apierrors.IsNotFound(err) || apierrors.IsTimeout(err) ||
			apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
	}
	repeated := false
	return retry.OnError(wait.Backoff{Duration: pause, Steps: int(run.Patience / pause)}, expected, func() error {
		err := create()
		if repeated && apierrors.IsAlreadyExists(err) {
			return nil
		}
		repeated = true
		return err
	})
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
	for i := range nodes {
		c.group.Go(func() error {
			return c.repeat(func() error {
				_, err := x.Kube.CoreV1().Nodes().Create(b.Context(), node(i), metav1.CreateOptions{})
				return err
			})
		})
		c.create(topologies, "NodeResourceTopology", "", nodeName(i), topology())
		c.create(latencies, "NetworkMetric", "", nodeName(i),
			object{"status": object{"latencyMilliseconds": float64(1+i%97) / 10}})
	}
	for _, team := range teamNames() {
		x.Namespace(b.Context(), b, team)
		c.create(elasticQuotas, "ElasticQuota", team, "quota",
			object{"spec": object{"min": object{"cpu": "1000", "memory": "1000Gi"},
				"max": object{"cpu": "2000", "memory": "2000Gi"}}})
		for gang := range gangs {
			for _, profile := range []string{bundled, native} {
				c.create(podGroups, "PodGroup", team, gangName(profile, gang),
					object{"spec": object{"minMember": int64(gangSize), "scheduleTimeoutSeconds": int64(600)}})
			}
		}
	}
	if err := c.group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func gangName(profile string, gang int) string { return fmt.Sprintf("%s-%d", profile, gang) }

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// node returns a node with room for many pods and a price.
func node(i int) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
		gpuResource:         resource.MustParse("4000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			corev1.LabelHostname: nodeName(i), "pmk-sched.io/price": fmt.Sprintf("0.%02d", 10+i%80),
		}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// topology returns the content of the NodeResourceTopology of a node with two zones.
func topology() object {
	var all []any
	for z := range 2 {
		amount := func(name, value string) object {
			return object{"name": name, "capacity": value, "allocatable": value, "available": value}
		}
		all = append(all, object{"name": fmt.Sprintf("node-%d", z), "type": "Node",
			"resources": []any{amount("cpu", "8"), amount("memory", "32Gi")}})
	}
	return object{"zones": all, "attributes": []any{
		object{"name": "topologyManagerPolicy", "value": "single-numa-node"}, object{"name": "topologyManagerScope",
			"value": "container"},
	}}
}

// createPods creates the pods of all teams: in turn a gang for each profile. The scheduler takes
// them in the order of their names.
func (x *bench) createPods(ctx context.Context, b *testing.B, p pair) {
	b.Helper()
	for _, team := range teamNames() {
		var all []*corev1.Pod
		for gang := range p.pods / teams / gangSize {
			for _, profile := range p.profiles() {
				for range gangSize {
					all = append(all, newPod(profile, gang, fmt.Sprintf("pod-%04d", len(all)), p.gpus))
				}
			}
		}
		x.Create(ctx, b, team, all...)
	}
}

// newPod returns a pod of a gang.
func newPod(profile string, gang int, name string, gpus bool) *corev1.Pod {
	pod := controlplane.Filling(controlplane.Pod(profile, "", name))
	pod.Spec.NodeSelector = nil
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
		corev1.ResourceMemory: resource.MustParse("1Gi")}
	if gpus {
		requests[gpuResource] = resource.MustParse("500")
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: requests}
	pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": gangName(profile, gang)}
	return pod
}
