package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

const head = "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: my-scheduler, namespace: " +
	"custom}\n"

// complete uses each kind of value.
const complete = head + `spec:
  source:
    branch: v1.24.3
    plugins:
    - {builtin: loadaware, weight: 2, args: {address: "http://p"}, enable: []}
    - {module: example.com/m@v1.0.0, package: p}
  image: {repository: registry.example.com/s, pullPolicy: Always, platforms: [linux/amd64]}
  configuration:
    inline: |
      # the comment stays
      kind: KubeSchedulerConfiguration
  extenders:
  - {name: mine, ignorable: true, httpTimeout: 500ms, replicas: auto, policies: [{name: blockall, weight: 2, args: {namespaces: [x]}}]}
  replicas: auto
  ports: {secure: 10300}
  resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}
  rbac:
    rules:
    - {apiGroups: [""], resources: [pods], verbs: [patch]}
`

func decode(t *testing.T, text string) *v1alpha1.CustomScheduler {
	t.Helper()
	s, err := v1alpha1.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRequestIsTheSameAsJSON(t *testing.T) {
	s := decode(t, complete)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.Spec.Ports.Secure != 10300 || s.Spec.Replicas != 0 || s.Namespace != "custom" ||
		!strings.HasPrefix(string(s.Spec.Configuration.Inline), "# the comment stays\n") {
		t.Errorf("got %+v", s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again := &v1alpha1.CustomScheduler{}
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, again); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s, s.DeepCopy()); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

// A mapping and the text of the mapping are the same configuration.
func TestDocumentIsAMappingOrAText(t *testing.T) {
	for _, text := range []string{"inline: {parallelism: 4}", "inline: '{parallelism: 4}'"} {
		s := decode(t, head+"spec:\n  configuration:\n    "+text+"\n")
		if got := strings.TrimSpace(string(s.Spec.Configuration.Inline)); got != "{parallelism: 4}" {
			t.Errorf("%s: got %q", text, got)
		}
	}
	var d v1alpha1.Document
	if err := json.Unmarshal([]byte(`{"parallelism":4}`), &d); err != nil || d != `{"parallelism":4}` {
		t.Errorf("got %q, %v", d, err)
	}
}

func TestInvalidFilesAreRefusedWithTheirLines(t *testing.T) {
	refused := refusals{}
	for text, want := range map[string]string{
		"":                    "the file is empty",
		head + "---\n" + head: "a second document",
		"kind: X\n":           `expected a CustomScheduler, got  "X"`,
		"apiVersion: v1\nkind: Config\nclusters: []\n":           `expected a CustomScheduler, got v1 "Config"`,
		head + "spec: {preset: binpack}":                         "line 4: unknown field preset",
		head + "spec:\n  replicas: none":                         `line 5: invalid value "none": must be a number above 0, or auto`,
		head + "spec: {replicas: 0}":                             `line 4: invalid value "0": must be a number above 0, or auto`,
		head + "spec: {replicas: -1}":                            `line 4: invalid value "-1"`,
		head + "spec:\n  resources: {limits: {memory: x}}":       `line 5: invalid quantity "x"`,
		head + "spec:\n  extenders: [{name: a, httpTimeout: 1}]": `line 5: invalid duration "1"`,
		head +
			"spec:\n  rbac: {rules: [{verb: [get]}]}": `line 5: spec.rbac.rules: unknown field "verb"`,
		head + "spec:\n  rbac: {rules: [{verbs: [get]}]}":    "line 5: spec.rbac.rules[0] needs verbs",
		head + "spec: {replicas: 1, replicas: 2}":            "already defined",
		head + "spec: {configuration: {preset: a, file: b}}": "more than one of preset, file and inline",
		head +
			"spec: {source: {plugins: [{weight: 1}]}}": "spec.source.plugins[0]: one of builtin, module and path is required",
		head +
			"spec: {source: {plugins: [{builtin: a}, {builtin: a, path: b}]}}": "spec.source.plugins[1]: builtin and path " +
			"exclude each other",
		head + "spec: {source: {plugins: [{module: example.com/m}]}}": "module example.com/m has no version",
		head + "spec: {source: {plugins: [{path: a, package: b}]}}":   "package is valid with module only",
		head +
			"spec: {anyNode: true, nodeSelector: {a: b}}": "spec.anyNode and spec.nodeSelector exclude each other",
		head + "spec:\n  tolerations: [{key: a, effects: NoSchedule}]":                     "line 5: unknown field effects",
		head + "spec: {tolerations: [{key: a}, {operator: Equal}]}":                        "spec.tolerations[1]: key is required",
		head + "spec: {tolerations: [{key: a, operator: Exists, value: b}]}":               "spec.tolerations[0]: operator Exists excludes",
		head + "spec: {tolerations: [{key: a, operator: exists}]}":                         `spec.tolerations[0]: invalid operator "exists"`,
		head + "spec: {tolerations: [{key: a, effect: NoScheduling}]}":                     `spec.tolerations[0]: invalid effect`,
		head + "spec: {tolerations: [{operator: Exists, tolerationSeconds: 3}]}":           "tolerationSeconds requires effect NoExecute",
		head + "spec: {tolerations: [{value: a}]}":                                         "spec.tolerations[0]: key is required",
		head + "spec: {tolerations: [{key: a, tolerationSeconds: 3, effect: NoSchedule}]}": "tolerationSeconds requires",
		head + "spec: {priorityClassName: System_Critical}":                                "spec.priorityClassName: invalid name",
		head +
			"spec: {extenders: [{name: A}]}": `spec.extenders[0]: the name "A" is not a DNS label`,
		head + "spec: {extenders: [{name: a}, {name: a}]}": `spec.extenders: duplicate name "a"`,
		head + "spec: [": "line 4",
		head + "spec: {configuration: {preset: a, inline: 'b: 1'}}":                             "more than one of preset, file and inline",
		head + "spec: {source: {plugins: [{module: m@v1, name: n}]}}":                           "name is valid with builtin only",
		head + "spec: {source: {plugins: [{module: m@v1, path: p}]}}":                           "module and path exclude each other",
		head + "spec: {rbac: {rules: [{verbs: [get], resources: [a]}]}}":                        "spec.rbac.rules[0] needs verbs",
		head + "spec: {rbac: {rules: [{verbs: [get], apiGroups: ['']}]}}":                       "spec.rbac.rules[0] needs verbs",
		head + "spec: {rbac: {rules: [{resources: [a], apiGroups: ['']}]}}":                     "spec.rbac.rules[0] needs verbs",
		head + "spec: {rbac: {rules: [{verbs: [get], nonResourceURLs: [/a]}, {verbs: [get]}]}}": "spec.rbac.rules[1] needs verbs",
		head + "spec: {rbac: {rules: 3}}":                                                       "spec.rbac.rules",
		head + "spec: {extenders: [{name: a, httpTimeout: 0s}]}":                                `invalid duration "0s"`,
		head + "spec: {extenders: [{name: a, httpTimeout: -1s}]}":                               `invalid duration "-1s"`,
		head +
			"spec:\n  extenders: [{name: a, tlsConfig: {keyData: U0VDUkVU}}]": "unknown field keyData",
		head + "spec:\n  source: {plugins: [{builtin: a, enable: filter}]}\n  resources: {limits: 3}": "line 5",
	} {
		s, err := v1alpha1.Decode([]byte(text))
		if err == nil {
			err = s.Validate()
		}
		refused[strings.ReplaceAll(text, head, "…\n")] = err
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "v1alpha1.") {
			t.Errorf("%q: got %v, want %q", strings.TrimPrefix(text, head), err, want)
		}
	}
	refused.equal(t, "refused-schedulers.txt")
}
