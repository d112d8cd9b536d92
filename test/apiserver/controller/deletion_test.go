//go:build linux

package controller

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// undeployable returns specs that the schema accepts and that no cluster can deploy, with a part of
// the reason.
func undeployable() map[string]string {
	extender := func(fields string) string { return complete + ", extenders: [{name: e" + fields + "}]" }
	const policies = ", policies: [{name: gpupacking}]"
	return map[string]string{
		extender(""): "--policy is required",
		extender(policies + ", filterVerb: other"):                 "does not serve",
		extender(policies):                                         "ignorable is not set",
		extender(policies + ", image: 'A image'"):                  "image",
		extender(policies + ", sidecar: true, replicas: 2"):        "is a sidecar",
		extender(policies + ", enableHTTPS: false"):                "enableHTTPS",
		extender(policies + ", tlsConfig: {insecure: true}"):       "tlsConfig",
		extender(policies + ", port: 99"):                          "port",
		extender(", policies: [{name: gpupacking, args: {a: 1}}]"): "gpupacking",
		extender(", urlPrefix: 'http://a', sidecar: true"):         "urlPrefix",
		extender(", urlPrefix: 'http://a', tlsConfig: {ca: auto}"): "tlsConfig.ca",
		"source: {branch: v1.24.3}, image: {reference: 'A image'}": "image",
		complete + ", configuration: {preset: none}":               "preset",
		complete + ", configuration: {inline: {kind: Other}}":      "kind",
		complete + ", args: ['--leader-elect=false']":              "leader-elect",
	}
}

// An object whose scheduler was never deployed has nothing to remove: it must not depend on its
// spec, which nobody checked, whether it can be deleted.
func TestObjectsThatWereNeverDeployedAreDeletedAtOnce(t *testing.T) {
	w := newWorld(t, server)
	w.start(t, w.options())
	n := 0
	for spec, reason := range undeployable() {
		n++
		name := fmt.Sprintf("undeployable-%d", n)
		object := w.stalled(t, name, spec)
		if text := message(object, v1alpha1.ConditionStalled); !has(text, reason) {
			t.Errorf("%s: message: %s", spec, text)
		}
		w.delete(t, name)
	}
	// The schema refuses other names, and a CEL rule this one, which 1.24 does not evaluate.
	w.stalled(t, "default-scheduler", complete)
	w.delete(t, "default-scheduler")
}

// stalled creates an object that cannot be deployed.
func (w *world) stalled(t *testing.T, name, spec string) *v1alpha1.CustomScheduler {
	t.Helper()
	w.mustCreate(t, name, "spec: {"+spec+"}")
	return w.await(t, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")
}
