package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

const (
	kind     = "kind: KubeSchedulerConfiguration\n"
	v1       = "apiVersion: kubescheduler.config.k8s.io/v1\n" + kind
	v1alpha1 = "apiVersion: kubescheduler.config.k8s.io/v1alpha1\n" + kind
	v1alpha2 = "apiVersion: kubescheduler.config.k8s.io/v1alpha2\n" + kind
)

// Fields move to their places in v1beta1, and a note has the line of each change.
func TestLegacyConfigurationsAreReadAsV1beta1(t *testing.T) {
	cases := map[string]string{
		"empty":            v1alpha1,
		"default-provider": v1alpha1 + "algorithmSource: {provider: DefaultProvider}\n",
		"other-provider":   v1alpha1 + "algorithmSource: {provider: ClusterAutoscalerProvider}\nschedulerName: x\n",
		"profile": v1alpha1 + "schedulerName: x\nplugins:\n  postFilter: {enabled: [{name: MyPlugin}]}\n" +
			"pluginConfig: [{name: MyPlugin, args: {a: 1}}]\n",
		"null-fields": v1alpha1 + "schedulerName: null\nplugins: null\nbindTimeoutSeconds: null\n" +
			"leaderElection: {lockObjectName: null, lockObjectNamespace: kube-system}\ndisablePreemption: null\n",
		"lock": v1alpha2 + "leaderElection: {leaderElect: true, lockObjectName: a, lockObjectNamespace: b}\n",
		"unreserve": v1alpha2 + "profiles:\n- plugins:\n    reserve: {enabled: [{name: One}]}\n" +
			"    unreserve: {enabled: [{name: One}, {name: Two}]}\n",
		"renamed-plugin": v1alpha2 + "profiles:\n- plugins:\n    preScore: {disabled: [{name: DefaultPodTopologySpread}]}\n" +
			"    score: {enabled: [{name: DefaultPodTopologySpread, weight: 3}]}\n" +
			"  pluginConfig: [{name: DefaultPodTopologySpread, args: {}}]\n",
		"arguments": v1alpha2 + "profiles:\n- pluginConfig:\n" +
			"  - {name: MyPlugin, args: {apiVersion: kubescheduler.config.k8s.io/v1alpha2, kind: MyPluginArgs}}\n" +
			"  - {name: Other, args: {apiVersion: example.com/v1alpha2, kind: OtherArgs}}\n",
		"fields-of-plugins": v1alpha2 + "hardPodAffinitySymmetricWeight: 7\nbindTimeoutSeconds: 60\nprofiles:\n- {}\n" +
			"- schedulerName: second\n  pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 3}}]\n",
		"preemption": v1alpha2 + "disablePreemption: true\nprofiles:\n- {}\n" +
			"- plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}\n",
		"preemption-enabled": v1alpha2 + "disablePreemption: false\n",
		"extenders": v1alpha2 + "extenders:\n- {urlPrefix: 'https://x', filterVerb: f, enableHttps: true, " +
			"httpTimeout: 2000000000, tlsConfig: {insecure: true}}\n- {urlPrefix: 'http://y', filterVerb: f, " +
			"httpTimeout: 3s}\n" +
			"- {urlPrefix: 'http://z', filterVerb: f}\n",
	}
	for name, source := range cases {
		t.Run(name, func(t *testing.T) {
			doc, err := schema.Parse("f.yaml", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			if doc.API.Name != "v1beta1" {
				t.Errorf("got config API %s, want v1beta1", doc.API.Name)
			}
			var text strings.Builder
			for _, note := range doc.Notes {
				fmt.Fprintf(&text, "# %d:%d %s\n", note.Line, note.Column, note.Message)
			}
			encoded, err := schema.Encode(doc.Root)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(encoded)
			golden.Equal(t, "testdata/legacy/"+name+".yaml", text.String())
		})
	}
}

func TestLegacyConfigurationsThatCannotBeRead(t *testing.T) {
	const policy = "algorithmSource: {policy: "
	cases := map[string]struct{ source, want string }{
		"a Policy in a ConfigMap": {v1alpha1 + policy + "{configMap: {namespace: a, name: b}}}\n",
			"f.yaml:3:27: v1alpha1 was removed in 1.19, and the predicates, priorities and extenders of this file are in " +
				"the Policy of ConfigMap a/b, which is not part of it"},
		"a Policy in a file": {v1alpha1 + policy + "{file: {path: /p.json}}}\n", "are in the Policy in the file /p.json"},
		"an unknown provider": {v1alpha1 + "algorithmSource: {provider: Other}\n",
			`f.yaml:3:29: unknown algorithm provider "Other"`},
		"profiles in v1alpha1":            {v1alpha1 + "profiles: []\nschedulerName: x\n", `unknown field "schedulerName"`},
		"a field of v1alpha1 in v1":       {v1 + "schedulerName: x\n", `unknown field "schedulerName"`},
		"a field of v1alpha1 in v1alpha2": {v1alpha2 + "schedulerName: x\n", `unknown field "schedulerName"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := schema.Parse("f.yaml", []byte(tc.source))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
