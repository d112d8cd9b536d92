package profiles_test

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
)

const (
	v1alpha1 = "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n"
	v1alpha2 = "apiVersion: kubescheduler.config.k8s.io/v1alpha2\nkind: KubeSchedulerConfiguration\n"
)

func TestConvertReadsLegacyAPIs(t *testing.T) {
	results := transcript{}
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"a provider": {v1alpha1 + "schedulerName: x\nalgorithmSource: {provider: ClusterAutoscalerProvider}\n",
			[]string{"type: MostAllocated", "schedulerName: x"}},
		"plugins of v1alpha1": {v1alpha1 + "plugins:\n  postFilter: {enabled: [{name: MyPlugin}]}\n" +
			"  unreserve: {enabled: [{name: MyPlugin}]}\n", []string{"preScore: {enabled: [{name: MyPlugin}]}", "reserve:"}},
		"plugins of v1alpha2": {v1alpha2 + "disablePreemption: true\nprofiles:\n- schedulerName: a\n- schedulerName: b\n" +
			"  plugins: {preScore: {disabled: [{name: DefaultPodTopologySpread}]}}\n",
			[]string{"- name: DefaultPreemption", "schedulerName: b"}},
		"extenders of v1alpha2": {v1alpha2 + "extenders:\n- {urlPrefix: 'https://x', filterVerb: f, enableHttps: true, " +
			"httpTimeout: 2000000000, ignorable: true, tlsConfig: {insecure: true}}\n",
			[]string{"enableHTTPS: true", "httpTimeout: 2s"}},
		"a Policy in the same file": {v1alpha1 + "bindTimeoutSeconds: 60\n" +
			"algorithmSource: {policy: {configMap: {namespace: a, name: b}}}\n" + "---\napiVersion: v1\nkind: Policy\npriorities: [{name: MostRequestedPriority, weight: 2}]\n",
			[]string{"bindTimeoutSeconds: 60", "type: MostAllocated"}},
		"both in one ConfigMap": {"apiVersion: v1\nkind: ConfigMap\ndata:\n  policy.cfg: |\n    {\"kind\": \"Policy\", \"apiVersion\": \"v1\"," +
			"\"predicates\": [{\"name\": \"PodFitsResources\"}]}\n  c.yaml: |\n" +
			"    apiVersion: kubescheduler.config.k8s.io/v1alpha1\n    kind: KubeSchedulerConfiguration\n    schedulerName: both\n" +
			"    algorithmSource: {policy: {configMap: {namespace: a, name: b}}}\n",
			[]string{"schedulerName: both", "name: NodePorts"}},
	} {
		converted, err := convertTo(t, "v1.24.3", c.source, false)
		results.addConverted(name, err, converted)
		t.Run(name, func(t *testing.T) {
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(converted.YAML), want) {
					t.Errorf("no %q in\n%s", want, converted.YAML)
				}
			}
			v, err := profiles.Validate(profiles.ValidateRequest{Release: converted.Release, Source: converted.YAML,
				Plugins: []string{extraName}})
			if err != nil || !v.Valid() {
				t.Errorf("not valid: %v, %v", v, err)
			}
		})
	}
	results.equal(t, "convert-legacy.txt")
}

func TestConvertRejectsLegacyAPIsWithoutTheirPolicy(t *testing.T) {
	results := transcript{}
	for source, want := range map[string]string{
		"algorithmSource: {policy: {file: {path: /etc/policy.json}}}\n": "are in the Policy in the file /etc/policy.json",
		"algorithmSource: {provider: Other}\n":                          `unknown algorithm provider "Other"`,
		"lockObjectName: x\n":                                           `unknown field "lockObjectName"`,
		"profiles: []\nschedulerName: x\n":                              `unknown field "schedulerName"`,
		"algorithmSource: {policy: {configMap: {namespace: a, name: b}}}\n---\napiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: c}\ndata: {policy.cfg: '{\"kind\": \"Policy\", \"apiVersion\": \"v1\"}'}\n": "the Policy of ConfigMap a/b",
	} {
		_, err := convertTo(t, "v1.24.3", v1alpha1+source, false)
		results.add(strings.TrimSpace(source), err, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%serror is %v, want %s", source, err, want)
		}
	}
	results.equal(t, "convert-legacy-refuses.txt")
}

func TestConfigurationsAreFoundInManifests(t *testing.T) {
	results := transcript{}
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n---\n"
	converted, err := convertTo(t, "v1.24.3", account+v1beta3, false)
	if err != nil || !strings.Contains(converted.Notes[0].Message, "not ServiceAccount a: pmk-sched grants") {
		t.Errorf("%v, %v", converted, err)
	}
	for name, c := range map[string]struct{ source, want string }{
		"two configurations": {account + v1beta3 + "---\n" + v1, "unexpected second document"},
		"none":               {account + "apiVersion: v1\nkind: Pod\n", "has a KubeSchedulerConfiguration: ServiceAccount a, Pod"},
		"braces":             {v1beta3 + "parallelism: {{ .Values.parallelism }}\n", "f.yaml:3:14: the file is a template"},
		"a block of Jinja":   {v1beta3 + "{% if x %}\n", "it contains {% if x %}"},
	} {
		_, err := convertTo(t, "v1.24.3", c.source, false)
		results.add(name, err, nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %s", name, err, c.want)
		}
	}
	results.equal(t, "convert-manifests.txt")
	converted, err = convertTo(t, "v1.24.3", v1beta3+"profiles: [{schedulerName: \"${NAME}\"}]\n", false)
	if err != nil || !strings.Contains(converted.Notes[0].Message, "${NAME} is of a template") {
		t.Errorf("%v, %v", converted, err)
	}
	if _, err := convertTo(t, "v1.24.3", "# {{ a comment }}\n"+v1beta3+"parallelism: 8 # {{ x }}\n", false); err != nil {
		t.Error(err)
	}
}

func TestConvertChangesVersionsOfArgumentsInTheSchedulersGroup(t *testing.T) {
	args := func(version string) string {
		return v1beta1 + "profiles: [{plugins: {filter: {enabled: [{name: Other}]}}, pluginConfig: [{name: Other, args: " +
			"{apiVersion: " + version + ", kind: OtherArgs}}]}]\n"
	}
	for version, want := range map[string]string{
		"kubescheduler.config.k8s.io/v1beta1": "apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: OtherArgs",
		"other.example.com/v1beta1":           "apiVersion: other.example.com/v1beta1, kind: OtherArgs",
	} {
		if converted, err := convertTo(t, "v1.24.3", args(version), false); err != nil ||
			!strings.Contains(string(converted.YAML), want) {
			t.Errorf("%s: %v, %v", version, converted, err)
		}
	}
}
