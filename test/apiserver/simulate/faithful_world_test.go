//go:build linux && (cases || releases)

package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// resources are the plural names of the kinds of the manifests.
var resources = map[string]string{
	"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Service": "services", "Node": "nodes", "Pod": "pods",
	"PersistentVolume": "persistentvolumes", "PersistentVolumeClaim": "persistentvolumeclaims",
	"StorageClass": "storageclasses", "CSINode": "csinodes",
	"PriorityClass": "priorityclasses", "PodDisruptionBudget": "poddisruptionbudgets", "ReplicaSet": "replicasets",
	"StatefulSet": "statefulsets", "DeviceClass": "deviceclasses", "ResourceSlice": "resourceslices",
	"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates",
}

// world is a cluster in which a scheduler schedules for real. The test does the work of controllers
// and kubelets.
type world struct {
	*controlplane.Plane
	objects dynamic.Interface
}

// newWorld starts the control plane of a release and creates the objects of manifests, with their
// status.
func newWorld(t *testing.T, release, manifests string) *world {
	t.Helper()
	w := &world{Plane: controlplane.Start(t, release)}
	config, err := clientcmd.BuildConfigFromFlags("", w.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if w.objects, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, o := range decodeManifests(t, manifests) {
		w.create(t.Context(), t, o)
	}
	return w
}

// decodeManifests reads YAML documents.
func decodeManifests(t *testing.T, manifests string) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4<<10)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		switch {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}

// of returns the client for objects like o.
func (w *world) of(o *unstructured.Unstructured) dynamic.ResourceInterface {
	kind := o.GroupVersionKind()
	all := w.objects.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version,
		Resource: resources[kind.Kind]})
	if o.GetNamespace() == "" {
		return all
	}
	return all.Namespace(o.GetNamespace())
}

// create creates an object and writes its status. A new node has no taint but its own, as when its
// kubelet is ready.
func (w *world) create(ctx context.Context, t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	client := w.of(o)
	var created *unstructured.Unstructured
	run.Eventually(t, "the API server knows what "+o.GetKind()+" "+o.GetName()+" needs",
		func(context.Context) (bool, string) {
			var err error
			if created, err = client.Create(ctx, o, metav1.CreateOptions{}); apierrors.IsForbidden(err) {
				return false, err.Error() // its cache does not have the service account or the priority class yet
			}
			if err != nil {
				t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
			}
			return true, ""
		})
	if o.GetKind() == "Node" {
		taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
		if err != nil {
			t.Fatal(err)
		}
		if created, err = client.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatalf("remove taints of node %s: %v", o.GetName(), err)
		}
	}
	if status, ok := o.Object["status"]; ok {
		created.Object["status"] = status
		updated, err := client.UpdateStatus(ctx, created, metav1.UpdateOptions{})
		if err != nil {
			t.Fatalf("write status of %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		return updated
	}
	return created
}

// snapshot takes a snapshot of the world.
func (w *world) snapshot(t *testing.T) string {
	t.Helper()
	file := t.TempDir() + "/world.tar.gz"
	run.PMKSched(t, "snapshot", "--kubeconfig", w.Kubeconfig, "--to-file", file).OK(t)
	return file
}

// addedPod is a pod that a controller makes.
type addedPod struct {
	// key is the same for the pod of the world and of the simulation: the workload's name and the
	// number.
	key string
	pod *unstructured.Unstructured
}

// add creates the objects of manifests but the pods, which it returns in their order, as the
// controllers of Deployments and StatefulSets make them.
func (w *world) add(t *testing.T, manifests string) (pods []addedPod) {
	t.Helper()
	for _, o := range decodeManifests(t, manifests) {
		switch o.GetKind() {
		case "Pod":
			pods = append(pods, addedPod{keyOf(o.GetName()), o})
		case "Deployment":
			pods = append(pods, w.deploy(t, o)...)
		case "StatefulSet":
			pods = append(pods, w.replicasOf(t, w.create(t.Context(), t, o), 0)...)
		default:
			w.create(t.Context(), t, o)
		}
	}
	return pods
}

// deploy creates the ReplicaSet of a Deployment, and returns its pods.
func (w *world) deploy(t *testing.T, deployment *unstructured.Unstructured) []addedPod {
	t.Helper()
	const label, hash = "pod-template-hash", "7d4c"
	set := deployment.DeepCopy()
	set.SetKind("ReplicaSet")
	set.SetName(deployment.GetName() + "-" + hash)
	for _, labels := range [][]string{{"spec", "selector", "matchLabels", label},
		{"spec", "template", "metadata", "labels", label}} {
		if err := unstructured.SetNestedField(set.Object, hash, labels...); err != nil {
			t.Fatal(err)
		}
	}
	return w.replicasOf(t, w.create(t.Context(), t, set), 1)
}

// replicasOf returns the pods of a ReplicaSet or a StatefulSet, and creates the claims of the
// latter.
func (w *world) replicasOf(t *testing.T, set *unstructured.Unstructured, first int) (pods []addedPod) {
	t.Helper()
	controls := true
	replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	template, _, _ := unstructured.NestedMap(set.Object, "spec", "template")
	for i := range int(replicas) {
		pod := (&unstructured.Unstructured{Object: template}).DeepCopy()
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		pod.SetNamespace(set.GetNamespace())
		pod.SetName(fmt.Sprintf("%s-%d", set.GetName(), first+i))
		pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: set.GetAPIVersion(), Kind: set.GetKind(),
			Name: set.GetName(), UID: set.GetUID(), Controller: &controls}})
		w.claim(t, set, pod)
		pods = append(pods, addedPod{keyOf(pod.GetName()), pod})
	}
	return pods
}

// claim creates the claims of a pod of a StatefulSet, and adds their volumes to the pod.
func (w *world) claim(t *testing.T, set, pod *unstructured.Unstructured) {
	t.Helper()
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	var volumes []any
	for _, template := range templates {
		claim := (&unstructured.Unstructured{Object: template.(map[string]any)}).DeepCopy()
		volume := claim.GetName()
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		claim.SetNamespace(set.GetNamespace())
		claim.SetName(volume + "-" + pod.GetName())
		delete(claim.Object, "status")
		w.create(t.Context(), t, claim)
		volumes = append(volumes,
			map[string]any{"name": volume, "persistentVolumeClaim": map[string]any{"claimName": claim.GetName()}})
	}
	if len(volumes) == 0 {
		return
	}
	if err := unstructured.SetNestedSlice(pod.Object, volumes, "spec", "volumes"); err != nil {
		t.Fatal(err)
	}
}

// keyOf returns the name of a pod without the hash of its ReplicaSet, which is another one in a
// simulation.
func keyOf(name string) string {
	parts := strings.Split(name, "-")
	return parts[0] + "-" + parts[len(parts)-1]
}

// decided returns the node of a pod, and whether the scheduler has decided about it.
func decided(pod *corev1.Pod) (node string, ok bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && pod.Status.NominatedNodeName == "" {
			ok = true
		}
	}
	return pod.Spec.NodeName, ok || pod.Spec.NodeName != ""
}

// control acts as the kubelets and the volume controllers, with a realistic delay.
func (w *world) control(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		for clock.Sleep(ctx, 300*time.Millisecond) == nil {
			if err := errors.Join(w.endPods(ctx), w.bindClaims(ctx)); err != nil && ctx.Err() == nil {
				t.Logf("controllers of the test: %v", err) // the next round tries again
			}
		}
	}()
}

// endPods removes the pods that are being deleted. A pod that the test deletes and creates again
// under its name has another UID: the API server shows it as being deleted for a moment also
// without a grace period (Store.Delete in
// staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go).
func (w *world) endPods(ctx context.Context) error {
	pods, err := w.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	now := int64(0)
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			continue
		}
		options := metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
		e := w.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
		if e != nil && !apierrors.IsNotFound(e) && !apierrors.IsConflict(e) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// bindClaims binds each claim to the volume that the scheduler has reserved for it, or to a new one
// in the zone of the node that it has selected.
func (w *world) bindClaims(ctx context.Context) error {
	claims, err := w.Kube.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	volumes, err := w.Kube.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	reserved := map[string]*corev1.PersistentVolume{}
	for i, v := range volumes.Items {
		if ref := v.Spec.ClaimRef; ref != nil {
			reserved[ref.Namespace+"/"+ref.Name] = &volumes.Items[i]
		}
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.VolumeName != "" {
			continue
		}
		volume := reserved[claim.Namespace+"/"+claim.Name]
		if node := claim.Annotations["volume.kubernetes.io/selected-node"]; volume == nil && node != "" {
			if volume, err = w.provision(ctx, claim, node); err != nil {
				return err
			}
		}
		if volume == nil {
			continue
		}
		if err := w.bind(ctx, claim, volume); err != nil {
			return err
		}
	}
	return nil
}

// provision creates a volume in the zone of a node.
func (w *world) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim,
	nodeName string) (*corev1.PersistentVolume, error) {
	node, err := w.Kube.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	zone := corev1.NodeSelectorRequirement{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn,
		Values: []string{node.Labels[zoneLabel]}}
	name := "pvc-" + string(claim.UID)
	return w.Kube.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "csi.example.com"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			StorageClassName: *claim.Spec.StorageClassName,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{zone}}},
			}},
		},
	}, metav1.CreateOptions{})
}

func (w *world) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	volume.Status.Phase = corev1.VolumeBound
	if _, err := w.Kube.CoreV1().PersistentVolumes().UpdateStatus(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim.Spec.VolumeName = volume.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	claim, err := w.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	claim.Status.Phase = corev1.ClaimBound
	_, err = w.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
