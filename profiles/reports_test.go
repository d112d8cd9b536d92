package profiles_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// report is one use of a file, which was rebuilt from a public report, and its outcome.
type report struct {
	file, plugins string
	// Exactly one of these names a release: to validate for, or to convert to.
	validate, convert string
	lossy             bool
	// refused is part of the error, or empty if the file is valid or can be converted.
	refused string
	// has are parts of the warnings of a valid file, or of the notes and the document of a conversion,
	// in any order; lacks is not in them.
	has   []string
	lacks string
}

// reports are the outcomes of the files in testdata/reports.
func reports() []report {
	const v1beta2 = "kubescheduler.config.k8s.io/v1beta2"
	return []report{
		{file: "external-args-version.yaml", convert: "v1.29.3", lacks: v1beta2,
			has: []string{"args of plugin Coscheduling: apiVersion v1beta2 becomes v1", "kind: LoadAwareSchedulingArgs"}},
		{file: "external-args-version.yaml", convert: "v1.29.3", lacks: v1beta2, plugins: "Coscheduling LoadAwareScheduling"},
		{file: "removed-plugin-args.yaml", validate: "v1.22.7",
			refused: "use NodeResourcesFit with args.scoringStrategy.type LeastAllocated"},
		{file: "removed-plugin-args.yaml", validate: "v1.24.3", has: []string{
			`plugin "NodeResourcesLeastAllocated" does not exist in v1.24.3; its arguments have no effect`,
			"use NodeResourcesFit with args.scoringStrategy.type LeastAllocated"}},
		{file: "removed-plugin-args.yaml", convert: "v1.24.3", lacks: "hugepages",
			has: []string{"the arguments of NodeResourcesLeastAllocated left out", "scoringStrategy.type LeastAllocated"}},
		{file: "unreserve.yaml", validate: "v1.20.15", plugins: "Coscheduling", refused: `unknown field "profiles[0].plugins.unreserve"`},
		{file: "v1alpha1-policy-manifest.yaml", convert: "v1.24.3",
			refused: "v1alpha1 was removed in 1.19, and the predicates, priorities and extenders of this file are in the Policy " +
				"of ConfigMap kube-system/share-policy, which is not part of it"},
		{file: "v1alpha1-policy-manifest-both.yaml", convert: "v1.24.3", has: []string{"urlPrefix: http://127.0.0.1:32000/share",
			"schedulerName: gpu-share", "resourceName: gpu-share", "name: example.com/gpu-mem", "ServiceAccount share"}},
		{file: "v1alpha1-policy-manifest-both.yaml", validate: "v1.21.3", refused: "v1.21.3 does not read v1alpha1, which 1.19 removed"},
		{file: "v1alpha1-policy-manifest-list.yaml", convert: "v1.24.3", has: []string{"v1beta3", "read from key c.yaml"}},
		{file: "v1alpha1-dump.yaml", convert: "v1.24.3", has: []string{"bindTimeoutSeconds: 300", "hardPodAffinityWeight: 5",
			"resourceName: kube-scheduler", "resourceNamespace: kube-system", "resourceLock: endpointsleases",
			"postFilter:\n        disabled:\n          - name: DefaultPreemption"}, lacks: "lockObjectName:"},
		{file: "v1alpha1-dump-v1alpha2.yaml", convert: "v1.24.3", has: []string{"{name: ImageLocality}", "schedulerName: gang"}},
		{file: "lock-configmaps-v1.yaml", validate: "v1.30.1", refused: `invalid resourceLock "configmaps"`},
		{file: "lock-configmaps-v1.yaml", convert: "v1.30.1", has: []string{"resourceLock: leases"}},
		{file: "lock-configmaps-v1.yaml", convert: "v1.24.3", has: []string{"resourceLock: configmapsleases"}},
		{file: "flat-indent.yaml", validate: "v1.21.3", refused: "kubeconfig belongs below clientConnection"},
		{file: "args-without-name.yaml", validate: "v1.24.3", has: []string{"its arguments reach no plugin"}},
		{file: "args-without-name.yaml", validate: "v1.25.5", has: []string{"its arguments reach no plugin"}},
		{file: "args-without-name.yaml", convert: "v1.30.1", has: []string{"its arguments reach no plugin"}, lacks: "shape:"},
		{file: "args-without-name-split.yaml", validate: "v1.22.7", has: []string{"pluginConfig[1] has no name"}},
		{file: "args-without-name-split.yaml", convert: "v1.24.3", has: []string{"pluginConfig[1] has no name"}},
		{file: "hami-extender.yaml", validate: "v1.24.3", has: []string{"httpTimeout 30s", "insecure: true accepts any certificate",
			"the weight 1 has no effect", "ignorable is not set"}},
		{file: "hami-extender.yaml", convert: "v1.30.1", has: []string{"ignorable is not set", "https://127.0.0.1:443"}},
		{file: "hami-extender.yaml", convert: "v1.21.3", has: []string{"v1beta1"}},
		{file: "tidb-chart.yaml", validate: "v1.22.7"},
		{file: "tidb-chart.yaml", convert: "v1.28.6", has: []string{"no plain HTTP listener"}, lacks: "healthzBindAddress:"},
		{file: "metadata-unknown-plugin.yaml", validate: "v1.30.1", refused: `unknown field "metadata"`},
		{file: "metadata-unknown-plugin.yaml", validate: "v1.30.1", refused: `plugin "NodePreferAvoid" does not exist in v1.30.1`},
		{file: "no-kubeconfig.yaml", validate: "v1.28.6", has: []string{"clientConnection.kubeconfig is not set"}},
		{file: "no-kubeconfig.yaml", validate: "v1.36.3", has: []string{"clientConnection.kubeconfig is not set"}},
		{file: "user-scheduler-lock.yaml", validate: "v1.25.5"},
		{file: "user-scheduler-lock.yaml", validate: "v1.27.6", refused: "only supports leases"},
		{file: "user-scheduler-lock.yaml", convert: "v1.27.6", has: []string{"resourceLock: leases", "weight: 10000"}},
		{file: "user-scheduler-lock.yaml", convert: "v1.21.3", has: []string{"{name: NodeResourcesMostAllocated, weight: 100}"}},
		{file: "enabled-twice.yaml", validate: "v1.21.3", refused: "InterPodAffinity is enabled twice under score"},
		{file: "enabled-twice.yaml", convert: "v1.21.3", has: []string{"disabled: [{name: InterPodAffinity}]"}},
		{file: "enabled-twice.yaml", convert: "v1.30.1", has: []string{"{name: InterPodAffinity, weight: 2}"}},
		{file: "spread-list.yaml", convert: "v1.22.7", lacks: "defaultingType"},
		{file: "spread-list.yaml", convert: "v1.29.3", has: []string{"defaultingType: List"}},
		{file: "stork-policy.json", validate: "v1.21.3", has: []string{"httpTimeout 10s"}},
		{file: "stork-policy.json", convert: "v1.24.3", has: []string{"httpTimeout: 10s", "apiVersion left out"}},
		{file: "tas-extender.yaml", validate: "v1.24.3", has: []string{"telemetry/scheduling is not checked on nodes"}},
		{file: "tas-extender.yaml", convert: "v1.29.3", has: []string{"/host/certs/client.crt"}},
		{file: "url-without-host.json", validate: "v1.21.3", has: []string{`invalid urlPrefix "/prefix"`}},
		{file: "url-without-host.json", convert: "v1.24.3", has: []string{`invalid urlPrefix "/prefix"`}},
		{file: "zero-dump.yaml", validate: "v1.24.3", refused: "parallelism: expected a number from 1, got 0"},
		{file: "zero-dump.yaml", validate: "v1.24.3", refused: "podInitialBackoffSeconds: expected a number from 1, got 0"},
		{file: "null-client.yaml", validate: "v1.36.3"},
		{file: "null-client.yaml", convert: "v1.24.3", has: []string{"schedulerName: nulls"}},
		{file: "plugins-without-point.yaml", validate: "v1.30.1", refused: "enabled belongs below an extension point"},
		{file: "coscheduling-score.yaml", validate: "v1.21.3", refused: `plugin "Coscheduling" does not exist in v1.21.3`},
		{file: "no-scoring-profile.yaml", convert: "v1.21.3", has: []string{"score: {disabled: [{name: '*'}]}"}},
		{file: "no-scoring-profile.yaml", convert: "v1.29.3", has: []string{"score: {disabled: [{name: '*'}]}"}},
		{file: "two-profiles-queue-sort-intree.yaml", validate: "v1.23.5", refused: "queueSort differs from the first profile"},
		{file: "two-profiles-queue-sort-intree.yaml", validate: "v1.24.3", refused: "queueSort differs from the first profile"},
		{file: "two-profiles-queue-sort-intree.yaml", convert: "v1.24.3", refused: "queueSort differs from the first profile"},
		{file: "two-profiles-queue-sort.yaml", validate: "v1.29.3", plugins: "Coscheduling", refused: "queueSort differs"},
		{file: "two-profiles-queue-sort.yaml", convert: "v1.24.3", refused: "queueSort differs"},
		{file: "two-profiles-queue-sort-args.yaml", validate: "v1.29.3", plugins: "Coscheduling",
			refused: "the arguments of Coscheduling, which sorts the queue, differ from the first profile"},
		{file: "two-profiles-queue-sort-args.yaml", convert: "v1.24.3", plugins: "Coscheduling",
			refused: "the arguments of Coscheduling, which sorts the queue, differ"},
		{file: "bindpacking-template.yaml", validate: "v1.24.3", refused: "the file is a template (Helm, Jinja, envsubst): it contains {{ data_dir }}"},
		{file: "bindpacking-template.yaml", convert: "v1.24.3", refused: "render it first"},
		{file: "eks-binpack.yaml", validate: "v1.29.3"},
		{file: "eks-binpack.yaml", convert: "v1.24.3", has: []string{"{name: NodeResourcesFit, weight: 1}"}},
		{file: "eks-binpack.yaml", convert: "v1.21.3", has: []string{"{name: NodeResourcesMostAllocated, weight: 1}"}},
		{file: "koordinator-v1.yaml", validate: "v1.29.3", plugins: "Coscheduling"},
		{file: "koordinator-v1.yaml", convert: "v1.24.3", refused: "v1.24.3 has no extension point preEnqueue"},
		{file: "numa-multipoint.yaml", validate: "v1.29.3", plugins: "NodeResourceTopologyMatch"},
		{file: "numa-multipoint.yaml", convert: "v1.24.3", has: []string{"DynamicResources does not exist in v1.24.3"}},
		{file: "numa-multipoint.yaml", convert: "v1.21.3", refused: "the extension points of plugin NodeResourceTopologyMatch are unknown"},
		{file: "openshift-most.yaml", convert: "v1.29.3", has: []string{"{name: NodeResourcesFit, weight: 5}", "type: MostAllocated"}},
		{file: "k3s-most-default.yaml", validate: "v1.31.4"},
		{file: "k3s-most-default.yaml", validate: "v1.36.3"},
		{file: "k3s-most-default.yaml", validate: "v1.24.3", refused: "v1.24.3 does not read v1; it reads v1beta2 and v1beta3"},
		{file: "k3s-most-default.yaml", convert: "v1.24.3", has: []string{"type: MostAllocated"}},
		{file: "write-config-dump.yaml", convert: "v1.20.15",
			has: []string{"the arguments of NodeResourcesBalancedAllocation left out: v1.20.15 does not have them, and they are the defaults"}},
		{file: "write-config-dump.yaml", convert: "v1.21.3", lacks: "NodeResourcesBalancedAllocationArgs"},
		{file: "write-config-dump.yaml", convert: "v1.22.7", has: []string{"kind: NodeResourcesBalancedAllocationArgs"}},
		{file: "write-config-dump.yaml", convert: "v1.30.1", has: []string{"kind: NodeResourcesBalancedAllocationArgs"}},
		{file: "write-config-dump.yaml", convert: "v1.37.1", has: []string{"EBSLimits left out"}},
		{file: "half-migrated.yaml", validate: "v1.24.3", refused: "use NodeResourcesFit with args.scoringStrategy.type MostAllocated"},
		{file: "half-migrated.yaml", validate: "v1.25.5", refused: "use NodeResourcesFit with args.scoringStrategy.type MostAllocated"},
		{file: "half-migrated.yaml", convert: "v1.25.5", lossy: true, has: []string{"{name: NodeResourcesFit, weight: 5}",
			"type: MostAllocated"}, lacks: "lost:"},
		{file: "disabled-plugin-misspelt.yaml", validate: "v1.24.3",
			has: []string{`score.disabled: plugin "NodeResourceFit" does not exist in v1.24.3`, "did you mean NodeResourcesFit?"}},
	}
}

func TestReportedFiles(t *testing.T) {
	results := transcript{}
	for _, r := range reports() {
		source, err := os.ReadFile("testdata/reports/" + r.file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.run(t, source)
		what := fmt.Sprintf("%s validate:%s convert:%s %s", r.file, r.validate, r.convert, r.plugins)
		results[strings.TrimSpace(what)] = text
		t.Run(r.file+" "+r.validate+r.convert, func(t *testing.T) {
			switch {
			case r.refused == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case r.refused != "" && err == nil:
				t.Fatalf("not refused, but\n%s", text)
			case r.refused != "":
				r.has = []string{r.refused}
			}
			for _, want := range r.has {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if r.lacks != "" && strings.Contains(text, r.lacks) {
				t.Errorf("%q in\n%s", r.lacks, text)
			}
		})
	}
	results.equal(t, "reports.txt")
}

// run returns the error with its hint, or the warnings and the converted document.
func (r report) run(t *testing.T, source []byte) (text string, err error) {
	t.Helper()
	release, err := versions.Parse(r.validate + r.convert)
	if err != nil {
		t.Fatal(err)
	}
	var notes []profiles.Note
	if r.convert != "" {
		converted, failed := profiles.Convert(profiles.ConvertRequest{Release: release, Source: source, SourceName: r.file,
			Plugins: strings.Fields(r.plugins), Lossy: r.lossy})
		if err = failed; err == nil {
			notes, text = converted.Notes, string(converted.YAML)
		}
	} else {
		v, failed := profiles.Validate(profiles.ValidateRequest{Release: release, Source: source, SourceName: r.file,
			Plugins: strings.Fields(r.plugins)})
		if err = failed; err == nil {
			notes, err = v.Warnings, v.Err()
		}
	}
	for _, n := range notes {
		text += n.In(r.file) + "\n"
	}
	if err != nil {
		text = err.Error() + "\n" + err.(interface{ Hint() string }).Hint() //nolint:errorlint,forcetypeassert // both return it
	}
	return text, err
}
