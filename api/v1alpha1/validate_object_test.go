package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

func TestValidateObjectNamesTheFieldThatIsWrong(t *testing.T) {
	const image = "image: {reference: r/s:v1}, source: {branch: v1.24.3"
	digest := strings.Repeat("a", 64)
	for spec, want := range map[string]string{
		image + "}": "",
		"releases: {oci: 'r/x@sha256:" + digest + "'}":    "",
		"releases: {configMap: {name: a}}":                "",
		"{}":                                              "spec.releases is required",
		"image: {reference: r/s:v1}":                      "spec.releases is required",
		image + ", plugins: [{builtin: a}, {path: ./p}]}": "spec.source.plugins[1].path",
		image + "}, configuration: {file: a.yaml}":        "spec.configuration.file",
		image + "}, credentials: node":                    "spec.credentials",
		"image: {reference: r/s:v1, busybox: /b}, source: {branch: v1.24.3}":             "spec.image.busybox",
		"image: {reference: r/s:v1, requireSignature: k.pub}, source: {branch: v1.24.3}": "spec.image.requireSignature",
		image + "}, extenders: [{name: a, tlsConfig: {keyFile: k}}]":                     "spec.extenders[0].tlsConfig.keyFile",
		image + "}, extenders: [{name: a, tlsConfig: {ca: ca.crt}}]":                     "spec.extenders[0].tlsConfig.ca",
		"releases: {oci: 'r/x:v1'}":                                                      "spec.releases.oci",
		"releases: {configMap: {name: a}, oci: 'r/x@sha256:" + digest + "'}":             "spec.releases",
		"releases: {configMap: {name: a}, publicKey: '-----BEGIN X'}":                    "spec.releases.publicKey",
		"releases: {items: [{minor: '1.24', release: v1.25.1, image: a}]}":               "spec.releases[0]",
	} {
		t.Run(spec, func(t *testing.T) {
			var object v1alpha1.CustomScheduler
			if !strings.HasPrefix(spec, "{") {
				spec = "{" + spec + "}"
			}
			if err := yaml.UnmarshalStrict([]byte("spec: "+spec), &object); err != nil {
				t.Fatal(err)
			}
			err := object.ValidateObject()
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func TestObjectsAreCopied(t *testing.T) {
	list := &v1alpha1.CustomSchedulerList{Items: []v1alpha1.CustomScheduler{{}}}
	list.Items[0].Spec.Configuration.Inline = "a: 1"
	copied := list.DeepCopyObject().(*v1alpha1.CustomSchedulerList)
	copied.Items[0].Spec.Configuration.Inline = "a: 2"
	if list.Items[0].Spec.Configuration.Inline != "a: 1" {
		t.Error("a copy shares its items")
	}
}
