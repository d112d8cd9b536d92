package v1alpha1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// notFiles are the fields with text that no command of this machine opens: they are compared,
// parsed, or stored in the cluster.
var notFiles = []string{
	"source.branch", "source.go", "source.imports",
	"source.plugins.builtin", "source.plugins.name", "source.plugins.module", "source.plugins.package",
	"source.plugins.args", "source.plugins.enable", "source.plugins.content",
	"image.reference", "image.repository", "image.tag", "image.platforms", "image.pullPolicy",
	"configuration.preset", "configuration.inline",
	"extenders.name", "extenders.urlPrefix", "extenders.filterVerb", "extenders.prioritizeVerb", "extenders.preemptVerb",
	"extenders.bindVerb", "extenders.image", "extenders.pullPolicy", "extenders.policies.name", "extenders.policies.args",
	"extenders.managedResources.name", "extenders.tlsConfig.serverName", "extenders.tlsConfig.caData",
	"extenders.tlsConfig.certData", "extenders.tlsConfig.-",
	"extenders.deployed.urlPrefix", "extenders.deployed.serverName", "extenders.deployed.caData",
	"extenders.deployed.clientSecret", "extenders.deployed.image", "extenders.deployed.rules.verbs",
	"extenders.deployed.rules.apiGroups", "extenders.deployed.rules.resources",
	"extenders.deployed.rules.resourceNames", "extenders.deployed.rules.nonResourceURLs",
	"credentials", "tolerations.key", "tolerations.operator", "tolerations.value", "tolerations.effect",
	"priorityClassName", "args", // simulations leave out flags about files
	"rbac.rules.verbs", "rbac.rules.apiGroups", "rbac.rules.resources", "rbac.rules.resourceNames",
	"rbac.rules.nonResourceURLs",
	"releases.items.minor", "releases.items.release", "releases.items.inputs", "releases.items.plugins",
	"releases.items.image", "releases.items.configuration",
	"releases.items.args", "releases.items.rules.verbs", "releases.items.rules.apiGroups", "releases.items.rules.resources",
	"releases.items.rules.resourceNames", "releases.items.rules.nonResourceURLs",
	"releases.configMap.name", "releases.configMap.key", "releases.oci", "releases.publicKey",
	"rollout.gates", "rollout.state.verdict", "rollout.state.reason",
	"route.namespaceSelector.matchExpressions.key", "route.namespaceSelector.matchExpressions.operator",
	"route.namespaceSelector.matchExpressions.values", "route.namespaces", "route.onFailure",
	"route.podSelector.matchExpressions.key", "route.podSelector.matchExpressions.operator",
	"route.podSelector.matchExpressions.values", "route.resources",
	"upgradePolicy", "deletionPolicy",
}

// texts returns the paths of the fields of a struct that hold text, with whether they have the tag
// file.
func texts(t reflect.Type, path string, found map[string]bool) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := strings.TrimPrefix(path+"."+name, ".")
		of := field.Type
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice}, of.Kind()) && of != reflect.TypeFor[[]byte]() {
			of = of.Elem()
		}
		switch {
		case of.Kind() == reflect.Struct:
			texts(of, inner, found)
		case of.Kind() == reflect.String || of == reflect.TypeFor[[]byte]():
			found[inner] = field.Tag.Get("file") != ""
		}
	}
}

// A new field with text is in neither list: whether it may name a file has to be decided.
func TestEveryFieldThatMayNameAFileIsMarked(t *testing.T) {
	found := map[string]bool{}
	texts(reflect.TypeFor[v1alpha1.CustomSchedulerSpec](), "", found)
	var marked, others []string
	for path, file := range found {
		if file {
			marked = append(marked, path)
		} else {
			others = append(others, path)
		}
	}
	slices.Sort(marked)
	slices.Sort(others)
	if diff := cmp.Diff(slices.Sorted(slices.Values(notFiles)), others); diff != "" {
		t.Errorf("fields without the tag file (-known +found):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"configuration.file", "extenders.tlsConfig.ca", "extenders.tlsConfig.certFile",
		"extenders.tlsConfig.keyFile", "image.base", "image.busybox", "image.requireSignature", "source.from",
		"source.plugins.path"}, marked); diff != "" {
		t.Errorf("fields with the tag file (-want +got):\n%s", diff)
	}
}

func TestValidateRecordedNamesTheFileWhoseContentIsMissing(t *testing.T) {
	const call = "extenders: [{name: a, urlPrefix: 'https://a', tlsConfig: "
	for spec, want := range map[string]string{
		"{}": "",
		"configuration: {file: a.yaml, inline: 'a: 1'}":                               "",
		"configuration: {file: a.yaml}":                                               "spec.configuration.file",
		"configuration: {preset: spread, inline: 'a: 1'}":                             "spec.configuration has more than one",
		"image: {requireSignature: none}":                                             "",
		"image: {requireSignature: '-----BEGIN X'}":                                   "",
		"image: {requireSignature: /root/key.pub}":                                    "spec.image.requireSignature",
		"image: {base: ./layout, busybox: /b}":                                        "",
		"source: {from: /kubernetes}":                                                 "",
		"source: {plugins: [{builtin: a}, {path: /p}]}":                               "spec.source.plugins[1].path",
		"source: {plugins: [{path: /p, content: YQ==}]}":                              "",
		"source: {plugins: [{module: x@v1.0.0, content: YQ==}]}":                      "spec.source.plugins[0] has sources",
		"source: {plugins: [{module: x@v1.0.0, path: /p}]}":                           "spec.source.plugins[0]: module and path",
		call + "{ca: auto}}]":                                                         "",
		call + "{ca: a}}]":                                                            "spec.extenders[0].tlsConfig.ca",
		call + "{ca: a, caData: YQ==}}]":                                              "",
		call + "{certFile: a}}]":                                                      "spec.extenders[0].tlsConfig.certFile",
		call + "{certFile: a, certData: YQ==, keyFile: b}}]":                          "spec.extenders[0].tlsConfig.keyFile",
		"source: {plugins: [{path: /p, content: YQ==}, {builtin: a, content: YQ==}]}": "spec.source.plugins[1] has sources",
		"configuration: {preset: spread, file: a.yaml}":                               "spec.configuration has more than one",
		call + "{serverName: a}}]":                                                    "",
		"extenders: [{name: ../a}]":                                                   "spec.extenders[0]: the name",
	} {
		t.Run(spec, func(t *testing.T) {
			if !strings.HasPrefix(spec, "{") {
				spec = "{" + spec + "}"
			}
			var recorded v1alpha1.CustomScheduler
			if err := yaml.UnmarshalStrict([]byte("spec: "+spec), &recorded); err != nil {
				t.Fatal(err)
			}
			err := recorded.ValidateRecorded()
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
