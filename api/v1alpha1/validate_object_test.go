package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

func TestValidateObjectNamesTheFieldThatIsWrong(t *testing.T) {
	const image = "image: {reference: r/s:v1}, source: {branch: v1.24.3"
	digest := strings.Repeat("a", 64)
	refused := refusals{}
	for spec, want := range map[string]string{
		image + "}": "",
		"releases: {oci: 'r/x@sha256:" + digest + "'}":                       "",
		"releases: {configMap: {name: a}}":                                   "",
		"{}":                                                                 "",
		"source: {branch: v1.24.3}":                                          "",
		"source: {plugins: [{builtin: a}]}":                                  "spec.releases is required",
		"image: {repository: r/s}":                                           "spec.releases is required",
		"image: {reference: r/s:v1}":                                         "spec.releases is required",
		image + ", plugins: [{builtin: a}, {path: ./p}]}":                    "spec.source.plugins[1].path",
		image + "}, configuration: {file: a.yaml}":                           "spec.configuration.file",
		image + "}, credentials: node":                                       "spec.credentials",
		"image: {reference: r/s:v1, busybox: /b}, source: {branch: v1.24.3}": "spec.image.busybox",
		"image: {reference: r/s:v1, requireSignature: k.pub}, source: {branch: v1.24.3}": "spec.image.requireSignature",
		image + "}, extenders: [{name: a, tlsConfig: {keyFile: k}}]":                     "spec.extenders[0].tlsConfig.keyFile",
		image + "}, extenders: [{name: a, tlsConfig: {ca: ca.crt}}]":                     "spec.extenders[0].tlsConfig.ca",
		"releases: {oci: 'r/x:v1'}":                                                      "spec.releases.oci",
		"releases: {configMap: {name: a}, oci: 'r/x@sha256:" + digest + "'}":             "spec.releases",
		"releases: {configMap: {name: a}, publicKey: '-----BEGIN X'}":                    "spec.releases.publicKey",
		"releases: {items: [{minor: '1.24', release: v1.25.1, image: a}]}":               "spec.releases[0]",
		"releases: {}":                           "spec.releases requires exactly one",
		"anyNode: true, nodeSelector: {a: b}":    "spec.anyNode and spec.nodeSelector",
		image + "}, credentials: serviceaccount": "",
		image + "}, credentials: auto":           "",
		"image: {reference: r/s:v1, requireSignature: none}, source: {branch: v1.24.3}":                    "",
		"image: {reference: r/s:v1, requireSignature: '-----BEGIN PUBLIC KEY'}, source: {branch: v1.24.3}": "",
		image + "}, extenders: [{name: a, tlsConfig: {ca: auto}}, {name: b, tlsConfig: {}}]":               "",
		image + "}, extenders: [{name: a}, {name: b, tlsConfig: {ca: ca.crt}}]":                            "spec.extenders[1].tlsConfig.ca",
		"image: {reference: r/s:v1}, source: {branch: auto}":                                               "spec.releases is required",
		"releases: {oci: 'r/x@sha256:" + digest + "', publicKey: '-----BEGIN X'}":                          "",
	} {
		var object v1alpha1.CustomScheduler
		text := spec
		if !strings.HasPrefix(spec, "{") {
			text = "{" + spec + "}"
		}
		if err := yaml.UnmarshalStrict([]byte("spec: "+text), &object); err != nil {
			t.Fatal(err)
		}
		err := object.ValidateObject()
		refused[spec] = err
		t.Run(spec, func(t *testing.T) {
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	refused.equal(t, "refused-objects.txt")
}

func TestObjectsAreCopied(t *testing.T) {
	list := &v1alpha1.CustomSchedulerList{Items: []v1alpha1.CustomScheduler{{}, {}}}
	list.Kind, list.ResourceVersion, list.RemainingItemCount = "CustomSchedulerList", "3", new(int64)
	list.Items[0].Spec.Configuration.Inline = "a: 1"
	list.Items[1].Spec.Extenders = []v1alpha1.Extender{{TLSConfig: &v1alpha1.TLSConfig{KeyData: []byte("key")}}, {}}
	copied := list.DeepCopyObject().(*v1alpha1.CustomSchedulerList)
	if diff := cmp.Diff(list, copied); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	copied.Items[0].Spec.Configuration.Inline = "a: 2"
	if list.Items[0].Spec.Configuration.Inline != "a: 1" {
		t.Error("a copy shares its items")
	}
}

func TestTypesAreRegistered(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	version := schema.GroupVersion{Group: v1alpha1.Group, Version: v1alpha1.Version}
	for _, kind := range []string{"CustomScheduler", "CustomSchedulerList", "ListOptions"} { // the last is of every group
		if !scheme.Recognizes(version.WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
}
