//go:build linux

package controller

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

const complete = "source: {branch: v1.24.3}, image: {reference: 'localhost/s:v1'}"

// wrongFields returns specs that the schema alone refuses, with the field that the error names.
func wrongFields() map[string]string {
	return map[string]string{
		complete + ", configuration: {file: a.yaml}":                    "spec.configuration.file",
		complete + ", credentials: node":                                "spec.credentials",
		complete + ", replicas: 0":                                      "spec.replicas",
		complete + ", replicas: many":                                   "spec.replicas",
		complete + ", upgradePolicy: Never":                             "spec.upgradePolicy",
		complete + ", deletionPolicy: Keep":                             "spec.deletionPolicy",
		complete + ", configuration: {preset: a, inline: {a: 1}}":       "spec.configuration",
		complete + ", resources: {limits: {cpu: much}}":                 "spec.resources.limits.cpu",
		complete + ", extenders: [{urlPrefix: 'http://a'}]":             "spec.extenders[0].name",
		complete + ", extenders: [{name: a, tlsConfig: {certFile: x}}]": "spec.extenders[0].tlsConfig.certFile",
		"releases: {oci: 'r/x:v1'}":                                     "spec.releases.oci",
		"releases: {configMap: {key: a}}":                               "spec.releases.configMap.name",
		"image: {requireSignature: cosign.pub, reference: 'l/s:v1'}":    "spec.image.requireSignature",
		"source: {plugins: [{path: ./p}]}":                              "spec.source.plugins[0].path",
	}
}

// contradictions returns specs whose fields are valid each, and a part of the refusal by a CEL rule
// of the API server or by the controller.
func contradictions() map[string]string {
	index := "items: [" + items("1.24", "v1.24.3", "localhost/s:v1") + "]"
	return map[string]string{
		"image: {reference: 'localhost/s:v1'}":                                    "releases is required",
		complete + ", anyNode: true, nodeSelector: {a: b}":                        "exclude each other",
		"releases: {" + index + ", configMap: {name: a, key: b}}":                 "exactly one of items, configMap and oci",
		"releases: {" + index + ", publicKey: \"-----BEGIN PUBLIC KEY-----\\n\"}": "publicKey requires oci",
		"releases: {" + index + "}, source: {plugins: [{builtin: a, module: m}]}": "builtin",
	}
}

func TestWrongObjectsAreRefusedWithTheField(t *testing.T) {
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) {
			parsed, err := versions.Parse(release)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, serverOf(t, parsed))
			for spec, field := range wrongFields() {
				w.refuses(t, spec, field)
			}
			w.refusesName(t, "Wrong.name")
			w.refusesName(t, "my.scheduler")
			w.refusesName(t, strings.Repeat("a", 64))
			if parsed.Rules().ValidationRules {
				for spec, reason := range contradictions() {
					w.refuses(t, spec, reason)
				}
				w.refusesName(t, "default-scheduler")
				return
			}
			w.start(t, w.options())
			for spec, reason := range contradictions() {
				w.stalls(t, spec, reason)
			}
		})
	}
}

// serverOf returns an API server of a release.
func serverOf(t *testing.T, release versions.Release) *apiserver.Server {
	t.Helper()
	if release.String() == apiserver.Release {
		return server
	}
	binaries, err := apiserver.BinariesOf(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	return apiserver.StartFor(t, binaries)
}

func (w *world) refuses(t *testing.T, spec, reason string) {
	t.Helper()
	err := w.create(t, "wrong", "spec: {"+spec+"}")
	withoutIndex := func(text string) string { return strings.ReplaceAll(text, "[0]", "") } // 1.20 has none
	if !apierrors.IsInvalid(err) || !strings.Contains(withoutIndex(err.Error()), withoutIndex(reason)) {
		t.Errorf("%s: got %v", spec, err)
	}
}

func (w *world) refusesName(t *testing.T, name string) {
	t.Helper()
	if err := w.create(t, name, "spec: {"+complete+"}"); !apierrors.IsInvalid(err) {
		t.Errorf("name %s: got %v", name, err)
	}
}

// stalls creates an object that the API server accepts, and fails the test unless the controller
// reports what is wrong.
func (w *world) stalls(t *testing.T, spec, reason string) {
	t.Helper()
	w.mustCreate(t, "stalled", "spec: {"+spec+"}")
	object := w.await(t, "stalled", v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")
	if text := message(object, v1alpha1.ConditionStalled); !has(text, reason) {
		t.Errorf("%s: message: %s", spec, text)
	}
	w.delete(t, "stalled")
}
