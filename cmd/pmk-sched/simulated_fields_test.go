package main

import (
	"crypto/x509"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// everyField sets the fields of CustomSchedulerSpec. Fields that exclude one of them are in
// otherFields.
const everyField = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: every, namespace: scheduling}
spec:
  source:
    branch: v1.24.3
    from: git:/src/kubernetes
    go: 1.26.8
    imports: [example.com/scheme]
    plugins: [{builtin: quiet, name: Quiet, weight: 3, args: {a: 1}, enable: [score]}]
  image:
    reference: registry.example.com/s:v1
    repository: registry.example.com/s
    tag: v1
    base: registry.example.com/base:v1
    requireSignature: none
    platforms: [linux/amd64]
    pullPolicy: Always
  configuration:
    lossy: true
    inline:
      apiVersion: kubescheduler.config.k8s.io/v1beta3
      kind: KubeSchedulerConfiguration
      parallelism: 5
      leaderElection: {leaderElect: true}
      extenders: [{urlPrefix: "http://first.example.com", filterVerb: f}]
  extenders:
  - name: existing
    urlPrefix: https://existing.example.com
    filterVerb: f
    prioritizeVerb: p
    preemptVerb: e
    bindVerb: b
    weight: 4
    enableHTTPS: true
    httpTimeout: 3s
    nodeCacheCapable: false
    ignorable: true
    managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
    tlsConfig: {serverName: e, ca: ca.pem, certFile: client.pem, keyFile: key.pem}
  - name: sidecar
    ignorable: true
    sidecar: true
    port: 12345
    image: registry.example.com/e:v1
    pullPolicy: Always
    policies: [{name: blockall, weight: 2, args: {namespaces: [a]}}]
  - name: service
    ignorable: true
    replicas: 3
    nodeSelector: {a: b}
    policies: [{name: blockall}]
  credentials: serviceaccount
  replicas: 2
  nodeSelector: {a: b}
  tolerations: [{key: a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 5}]
  route:
    namespaces: [a]
    namespaceSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
    podSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
    resources: [a]
    share: 10
    onFailure: Release
    failureAfter: 1m
  rollout: {steps: [1, 100], gates: [unschedulable<=1], stepTime: 1m, stepLimit: 2h, minPods: 3, settleTime: 1m, shadowTime: 1h}
  priorityClassName: none
  args: [--feature-gates=DefaultPodTopologySpread=true, --v=4, --bind-address=0.0.0.0]
  ports: {secure: 12000}
  resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}
  rbac: {authenticationReader: false, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
  releases: {configMap: {name: i}}
  upgradePolicy: Manual
  deletionPolicy: Orphan
`

const otherFields = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: other}
spec:
  image: {reference: registry.example.com/s:v1, busybox: /bin/busybox}
  source: {plugins: [{module: example.com/plugins@v1.0.0, package: example.com/plugins/quiet}, {path: .}]}
  configuration: {preset: binpack}
  extenders: [{name: e, urlPrefix: "https://e.example.com", filterVerb: f, ignorable: false, tlsConfig: {insecure: true}}]
  anyNode: true
`

// simulatedFields has a row for each field: "same" as in a deployment; "adapted" to a process on
// this machine; "named", by a note with the text after the word; "neither", if no deployment reads
// the field.
func simulatedFields() map[string]string {
	rows := map[string]string{
		"source.branch": "same", "source.from": "same", "source.go": "same", "source.imports": "same",
		"configuration.preset": "same", "configuration.file": "same", "configuration.inline": "adapted",
		"configuration.lossy": "same", "configuration.policyConfigMap": "named spec.configuration.policyConfigMap",
		"args":     "named --bind-address",
		"releases": "neither", "upgradePolicy": "neither", "deletionPolicy": "neither",
	}
	for prefix, fields := range map[string]string{
		"source.plugins.": "builtin name module package path weight args enable",
		"extenders.": "name urlPrefix filterVerb prioritizeVerb preemptVerb bindVerb weight enableHTTPS httpTimeout " +
			"nodeCacheCapable ignorable managedResources.name managedResources.ignoredByScheduler tlsConfig.insecure " +
			"tlsConfig.serverName tlsConfig.ca tlsConfig.certFile tlsConfig.keyFile",
	} {
		for _, field := range strings.Fields(fields) {
			rows[prefix+field] = "same"
		}
	}
	for _, field := range strings.Fields("image pullPolicy policies.name policies.weight policies.args replicas port sidecar " +
		"nodeSelector") {
		rows["extenders."+field] = "adapted" // to an address that refuses connections: askExtenders names it
	}
	for _, field := range strings.Fields("image.reference image.repository image.tag image.base image.busybox " +
		"image.requireSignature image.platforms image.pullPolicy credentials replicas nodeSelector anyNode priorityClassName " +
		"ports.secure resources.requests resources.limits rbac.rules rbac.authenticationReader tolerations.key tolerations.operator " +
		"tolerations.value tolerations.effect tolerations.tolerationSeconds route.namespaces route.resources route.onFailure " +
		"route.failureAfter route.share route.namespaceSelector.matchLabels route.namespaceSelector.matchExpressions.key " +
		"route.namespaceSelector.matchExpressions.operator route.namespaceSelector.matchExpressions.values " +
		"route.podSelector.matchLabels route.podSelector.matchExpressions.key " +
		"route.podSelector.matchExpressions.operator route.podSelector.matchExpressions.values " +
		"rollout.steps rollout.gates rollout.stepTime rollout.stepLimit rollout.minPods rollout.settleTime rollout.shadowTime") {
		top, _, _ := strings.Cut(field, ".")
		rows[field] = "named spec." + top
	}
	return rows
}

// leaves returns the paths of the fields of a type by their names in JSON, and whether v sets them.
func leaves(t reflect.Type, v reflect.Value, prefix string, found map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem().Kind() != reflect.Struct {
			break
		}
		if v.IsValid() {
			v = v.Elem()
		}
		leaves(t.Elem(), v, prefix, found)
		return
	case reflect.Slice:
		if elem := t.Elem(); elem.Kind() == reflect.Struct && strings.HasSuffix(elem.PkgPath(), "v1alpha1") {
			leaves(elem, reflect.Value{}, prefix, found)
			for i := 0; v.IsValid() && i < v.Len(); i++ {
				leaves(elem, v.Index(i), prefix, found)
			}
			return
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || f.Tag.Get("jsonschema") == "-" {
				continue
			}
			var value reflect.Value
			if v.IsValid() {
				value = v.Field(i)
			}
			path := strings.TrimPrefix(prefix+"."+name, ".")
			if path == "releases" {
				found[path] = found[path] || value.IsValid() && !value.IsZero()
				continue
			}
			leaves(f.Type, value, path, found)
		}
		return
	}
	found[prefix] = found[prefix] || v.IsValid() && !v.IsZero()
}

func TestEveryFieldOfASchedulerIsSimulatedOrNamed(t *testing.T) {
	client, err := certificates.NewAuthority(x509.Certificate{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile("../../profiles/testdata/extenders/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	chdir(t, map[string]string{"every.yaml": everyField, "other.yaml": otherFields,
		"go.mod": "module example.com/p\n\ngo 1.26\n", "p.go": "package p\n",
		"file.yaml": "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: policy}\nspec: {image: " +
			"{reference: i}, configuration: {file: configuration.yaml, policyConfigMap: true}}\n",
		"configuration.yaml": "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n",
		"ca.pem":             string(ca),
		"client.pem":         string(client.Cert), "key.pem": string(client.Key)})
	set := map[string]bool{}
	var notes []string
	for file, release := range map[string]string{"every.yaml": "v1.24.3", "other.yaml": "v1.33.2", "file.yaml": "v1.21.14"} {
		sp, err := spec.Read(spec.Flags{File: file, Branch: release, Version: "v0.1.0"})
		if err != nil {
			t.Fatal(err)
		}
		request, err := sp.Request()
		if err != nil {
			t.Fatal(err)
		}
		leaves(reflect.TypeOf(request.Spec), reflect.ValueOf(request.Spec), "", set)
		notes = append(notes, compareWithDeployment(t, sp, release)...)
	}
	rows := simulatedFields()
	for _, path := range slices.Sorted(maps.Keys(set)) {
		row, listed := rows[path]
		text, named := strings.CutPrefix(row, "named ")
		switch {
		case !listed:
			t.Errorf("spec.%s has no row: is it simulated, or named in the notes?", path)
		case !set[path]:
			t.Errorf("no file of this test sets spec.%s", path)
		case named && !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, text) }):
			t.Errorf("no note names spec.%s: %q", path, notes)
		}
		delete(rows, path)
	}
	if len(rows) > 0 {
		t.Errorf("rows without a field: %v", rows)
	}
}

// compareWithDeployment compares the configuration and the flags of a simulation with those of a
// deployment, and returns the notes of the simulation.
func compareWithDeployment(t *testing.T, sp *spec.Spec, branch string) []string {
	t.Helper()
	plugins := []profiles.Plugin{{Name: "Quiet", Points: []string{"score"}, Weight: 3}}
	if branch == "v1.21.14" {
		plugins = nil // a Policy enables none
	}
	request, facts, err := sp.Scheduler()
	if err != nil {
		t.Fatal(err)
	}
	facts.Plugins = plugins
	deployed, err := sp.Extenders()
	if err != nil {
		t.Fatal(err)
	}
	ignore := func(string) {}
	plan, err := extenders.PlanScheduler(t.Context(), deploy.Deps{Warn: ignore, Note: ignore},
		extenders.SchedulerDeployment{Request: request, Facts: facts, Extenders: deployed})
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := sp.Simulation(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ofDeploy, err := sp.Plugins()
	if err != nil {
		t.Fatal(err)
	}
	source := request.Spec.Source
	if diff := cmp.Diff(ofDeploy, simulated.Plugins); diff != "" || simulated.From != source.From ||
		simulated.Go != source.Go || !slices.Equal(simulated.Imports, source.Imports) || simulated.Branch != branch {
		t.Errorf("sources of the program: %+v, plugins (-deployment +simulation):\n%s", simulated, diff)
	}
	release, err := versions.Parse(branch)
	if err != nil {
		t.Fatal(err)
	}
	one := kubescheduler.Scheduler{Request: simulated, Release: release, Plugins: plugins}
	got, err := one.Configure(&session.Session{Log: zap.NewNop(), Note: ignore, Warn: ignore}, "kubeconfig", 0)
	if err != nil {
		t.Fatal(err)
	}
	if request.Spec.Configuration.PolicyConfigMap {
		return got.Notes // the Policy is a configuration
	}
	notes := strings.Join(got.Notes, "\n")
	if diff := cmp.Diff(adaptedConfiguration(t, plan), decodeYAML(t, got.YAML)); diff != "" {
		t.Errorf("configuration (-deployment +simulation):\n%s", diff)
	}
	flags := slices.DeleteFunc(plannedFlags(t, plan), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		ofProcess := []string{"--config", "--secure-port", "--authentication-kubeconfig", "--authorization-kubeconfig", "--v"}
		return slices.Contains(ofProcess, name) || strings.Contains(notes, name)
	})
	if diff := cmp.Diff(flags, got.Args); diff != "" {
		t.Errorf("flags (-deployment +simulation):\n%s", diff)
	}
	return got.Notes
}

// adaptedConfiguration returns the configuration of a plan, adapted as a simulation adapts it.
func adaptedConfiguration(t *testing.T, plan *deploy.Plan) map[string]any {
	t.Helper()
	c := decodeYAML(t, plan.Scheduler.Configuration.YAML)
	c["clientConnection"].(map[string]any)["kubeconfig"] = "kubeconfig"
	c["leaderElection"] = map[string]any{"leaderElect": false}
	all, _ := c["extenders"].([]any)
	for _, e := range all {
		e := e.(map[string]any)
		for _, w := range plan.Scheduler.Wirings {
			if e["urlPrefix"] == w.Extender.URLPrefix {
				e["urlPrefix"] = "http://127.0.0.1:1/deployed/" + w.Extender.Name
				delete(e, "tlsConfig")
				delete(e, "enableHTTPS")
			}
		}
	}
	return c
}

func decodeYAML(t *testing.T, text []byte) (decoded map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// plannedFlags returns the flags of the scheduler in the Deployment of a plan.
func plannedFlags(t *testing.T, plan *deploy.Plan) []string {
	t.Helper()
	at := slices.IndexFunc(plan.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	deployment := plan.Objects[at]
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		t.Fatalf("%s has no containers: %v", deployment.GetKind(), err)
	}
	command, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "command")
	if err != nil {
		t.Fatal(err)
	}
	return command[1:]
}
