package snapshot_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// anonymized returns the objects of the test without names, by kind.
func anonymized(t *testing.T, key string) (all []map[string]any, byKind map[string]map[string]any) {
	t.Helper()
	return anonymizedOf(t, key, "objects.yaml")
}

func anonymizedOf(t *testing.T, key, file string) (all []map[string]any, byKind map[string]map[string]any) {
	t.Helper()
	a := snapshot.NewAnonymizer([]byte(key))
	byKind = map[string]map[string]any{}
	objects := readObjects(t, filepath.Join("testdata", file))
	for _, object := range objects {
		kind, kept := strip(t, object)
		text, err := snapshot.Encode(kept)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Learn(kind, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range objects {
		kind, kept := strip(t, object)
		replaced, err := a.Object(kind, kept)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, replaced)
		byKind[kind.Name] = replaced
	}
	return all, byKind
}

func decodeAs[T any](t *testing.T, object map[string]any) *T {
	t.Helper()
	text, err := snapshot.Encode(object)
	if err != nil {
		t.Fatal(err)
	}
	value := new(T)
	if err := json.Unmarshal(text, value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAnonymizedObjects(t *testing.T) {
	all, _ := anonymized(t, "key")
	equalObjects(t, "testdata/anonymized.yaml", all)
}

// Values of wrong types are dropped, and words and numbers that identify no one are kept.
func TestAnonymizedOddObjects(t *testing.T) {
	all, _ := anonymizedOf(t, "key", "odd-objects.yaml")
	equalObjects(t, "testdata/odd-anonymized.yaml", all)
}

func TestOnlyObjectsAreLearnt(t *testing.T) {
	a := snapshot.NewAnonymizer(nil)
	for text, want := range map[string]string{`{"a":1}`: "", `{"a"`: "", "\"Gt\"": "read a stored Pod: json: cannot unmarshal",
		`{"operator":"Lt"`: "read a stored Pod: unexpected EOF", `{"ephemeral":{}`: "read a stored Pod: unexpected EOF"} {
		err := a.Learn(kindNamed(t, "Pod"), []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Names of the test's objects that no anonymized object may have.
func TestNoNameIsLeft(t *testing.T) {
	names := regexp.MustCompile(
		`worker|shop|web|eu-1a|rack|example\.com/(rack|tier|quota|dedicated|broken)|gold|team|10\.0|10\.2|vol-6|pvc-6|disk-7|scratch|night|"train"|fast|Shop|11111111|4711`)
	all, _ := anonymized(t, "key")
	for _, object := range all {
		text, err := snapshot.Encode(object)
		if err != nil {
			t.Fatal(err)
		}
		if found := names.FindAllString(string(text), -1); found != nil {
			t.Errorf("%q in %s", found, text)
		}
	}
}

func TestReferencesBetweenAnonymizedObjectsMatch(t *testing.T) {
	_, objects := anonymized(t, "key")
	pod, node := decodeAs[corev1.Pod](t, objects["Pod"]), decodeAs[corev1.Node](t, objects["Node"])
	claim, volume := decodeAs[corev1.PersistentVolumeClaim](t,
		objects["PersistentVolumeClaim"]), decodeAs[corev1.PersistentVolume](t, objects["PersistentVolume"])
	namespace, service := decodeAs[corev1.Namespace](t, objects["Namespace"]), decodeAs[corev1.Service](t,
		objects["Service"])

	fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil || !fits {
		t.Errorf("the pod does not fit its node: %v", err)
	}
	antiAffinity := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	equal := map[string][2]string{
		"node of the pod":          {pod.Spec.NodeName, node.Name},
		"hostname":                 {node.Labels[corev1.LabelHostname], node.Name},
		"selected node":            {claim.Annotations["volume.kubernetes.io/selected-node"], node.Name},
		"namespace of the pod":     {pod.Namespace, namespace.Name},
		"namespace of an affinity": {antiAffinity.Namespaces[0], namespace.Name},
		"claim of the volume":      {volume.Spec.ClaimRef.Name, claim.Name},
		"namespace of the claim":   {volume.Spec.ClaimRef.Namespace, claim.Namespace},
		"UID of the claim":         {string(volume.Spec.ClaimRef.UID), string(claim.UID)},
		"volume of the claim":      {claim.Spec.VolumeName, volume.Name},
		"claim of the ephemeral":   {ephemeral.VolumeClaimName(pod, &pod.Spec.Volumes[1]), claim.Name},
		"owner of the claim":       {claim.OwnerReferences[0].Name, pod.Name},
		"taint": {node.Spec.Taints[1].Key + node.Spec.Taints[1].Value,
			pod.Spec.Tolerations[0].Key + pod.Spec.Tolerations[0].Value},
		"image":               {pod.Spec.Containers[0].Image, node.Status.Images[0].Names[0]},
		"taint of Kubernetes": {node.Spec.Taints[0].Key, corev1.TaintNodeUnschedulable},
		"architecture":        {node.Labels[corev1.LabelArchStable], "amd64"},
		"a compared number": {
			node.Labels[required.NodeSelectorTerms[0].MatchExpressions[1].Key], "64"},
		"a compared taint": {
			node.Spec.Taints[2].Key + node.Spec.Taints[2].Value, pod.Spec.Tolerations[3].Key + "950"},
		"scheduler":                  {pod.Spec.SchedulerName, corev1.DefaultSchedulerName},
		"key of a spread constraint": {pod.Spec.TopologySpreadConstraints[0].TopologyKey, corev1.LabelTopologyZone},
	}
	for what, texts := range equal {
		if texts[0] != texts[1] {
			t.Errorf("%s: %q, %q", what, texts[0], texts[1])
		}
	}
	if err := ephemeral.VolumeIsForPod(pod, claim); err != nil {
		t.Error(err)
	}
	for what, selector := range map[string]*metav1.LabelSelector{
		"affinity": antiAffinity.LabelSelector, "spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector,
		"service": {MatchLabels: service.Spec.Selector},
	} {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || !s.Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s does not select the pod: %v", what, err)
		}
	}
	ofNamespace, err := metav1.LabelSelectorAsSelector(antiAffinity.NamespaceSelector)
	if err != nil || !ofNamespace.Matches(labels.Set(namespace.Labels)) {
		t.Errorf("the selector of namespaces does not match: %v", err)
	}
}

// The API server accepts the replacements as names, keys and values.
func TestReplacementsAreValidNames(t *testing.T) {
	_, objects := anonymized(t, "key")
	for kind, object := range objects {
		meta := decodeAs[metav1.PartialObjectMetadata](t, object)
		wrong := validation.IsDNS1123Subdomain(meta.Name)
		if meta.Namespace != "" {
			wrong = append(wrong, validation.IsDNS1123Label(meta.Namespace)...)
		}
		for key, value := range meta.Labels {
			wrong = append(append(wrong, validation.IsQualifiedName(key)...), validation.IsValidLabelValue(value)...)
		}
		if len(wrong) > 0 {
			t.Errorf("%s: %s", kind, strings.Join(wrong, "; "))
		}
	}
}

func TestReplacementsDependOnTheKeyAlone(t *testing.T) {
	first, _ := anonymized(t, "key")
	same, _ := anonymized(t, "key")
	if diff := cmp.Diff(first, same); diff != "" {
		t.Errorf("two runs with one key differ:\n%s", diff)
	}
	_, other := anonymized(t, "another key")
	_, one := anonymized(t, "key")
	for _, kind := range []string{"Pod", "Node", "Namespace"} {
		if decodeAs[metav1.PartialObjectMetadata](t, one[kind]).Name == decodeAs[metav1.PartialObjectMetadata](t,
			other[kind]).Name {
			t.Errorf("the name of the %s does not depend on the key", kind)
		}
	}
}

func TestCustomObjectsAreNotAnonymized(t *testing.T) {
	kind, err := snapshot.CustomKind("nodemetrics.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.NewAnonymizer(nil).Object(kind, map[string]any{}); err == nil {
		t.Error("no error")
	}
}
