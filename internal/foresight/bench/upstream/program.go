package upstream

import (
	"bytes"
	"go/format"
	"text/template"

	"github.com/pmk-sched/pmk-sched/versions"
)

// program is the name of the program with upstream's harness.
const program = "scheduler_perf.test"

// benchmark is the benchmark that it runs. Upstream's names of data items begin with it.
const benchmark = "BenchmarkPerfScheduling"

// topicVariable is the environment variable with the topic of the workloads.
const topicVariable = "PMK_SCHED_PERF_TOPIC"

// testTemplate is a test of the kube-scheduler's package that runs the harness of the release with
// the registered plugins. Before 1.32 the flags and the verbosity of the harness are in upstream's
// own file of tests.
var testTemplate = template.Must(template.New(program).Parse(`// The harness of scheduler_perf of Kubernetes {{.Release}}.
package main

import (
	"flag"
	"os"
	"testing"

	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
{{- if not .Topics}}
	"k8s.io/kubernetes/test/utils/ktesting"
{{- end}}
)

func TestMain(m *testing.M) {
{{- if .Topics}}
	if err := perf.InitTests(); err != nil {
		panic(err)
	}
{{- else}}
	ktesting.SetDefaultVerbosity(2)
{{- end}}
	flag.Parse()
	os.Exit(m.Run())
}

func Benchmark{{.Name}}(b *testing.B) {
	registry := frameworkruntime.Registry{}
{{- if .Plugins}}
	for _, register := range plugins() {
		if err := register(registry); err != nil {
			b.Fatal(err)
		}
	}
{{- end}}
{{- if .Topics}}
	perf.RunBenchmarkPerfScheduling(b, "performance-config.yaml", os.Getenv("{{.Variable}}"), registry)
{{- else}}
	perf.RunBenchmarkPerfScheduling(b, registry)
{{- end}}
}
`))

// generate returns the test for a release. plugins is set if the scheduler's package
// registers plugins.
func generate(release versions.Release, plugins bool) ([]byte, error) {
	var text bytes.Buffer
	err := testTemplate.Execute(&text, map[string]any{
		"Release": release, "Topics": release.Rules().PerfTopics, "Plugins": plugins,
		"Name": benchmark[len("Benchmark"):], "Variable": topicVariable,
	})
	if err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}
