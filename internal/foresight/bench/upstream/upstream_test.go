package upstream

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// The golden files are the tests that are compiled with the harness of a release: with and without
// plugins, and with the workloads in one file and in topics.
func TestHarnessOfAReleaseIsCalledWithThePlugins(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"v1.30.14", "v1.31.0", "v1.34.2", "v1.37.1"} {
		parsed, err := versions.Parse(release)
		if err != nil {
			t.Fatal(err)
		}
		text, err := generate(parsed, release != "v1.31.0")
		if err != nil {
			t.Fatal(err)
		}
		golden.Equal(t, "testdata/"+release+".go.txt", text)
	}
}

const testCases = `# a comment
- name: Basic
  labels: [misc]
  workloads:
  - name: 5Nodes/small one
    labels: [integration-test, short]
    params: {nodes: 5000000}
  - name: 5000Nodes
    labels: [performance]
    threshold: 680
- name: Latency
  schedulerConfigPath: own.yaml
  defaultThresholdMetricSelector: {name: duration_seconds, labels: {result: scheduled}, dataBucket: Perc99, expectLower: true}
  workloads:
  - name: topics
    labels: [performance]
    threshold: {fast: 10, slow: 20}
  - name: selected
    labels: [performance]
    threshold: 5
    thresholdMetricSelector: {name: SchedulingThroughput}
`

func TestWorkloadsAreSelectedByLabels(t *testing.T) {
	t.Parallel()
	perSecond := Threshold{Metric: Throughput, Bucket: average}
	latency := Threshold{Metric: "duration_seconds", Labels: map[string]string{"result": "scheduled"}, Bucket: "Perc99",
		Value: 20, Most: true}
	basic, selected := perSecond, perSecond
	basic.Value, selected.Value = 680, 5
	for filter, want := range map[string][]selection{
		"integration-test": {{dir: "misc", topic: "slow", names: [2]string{"Basic", "5Nodes/small one"}}},
		"performance,-misc": {
			{dir: "misc", topic: "slow", names: [2]string{"Latency", "topics"}, threshold: latency, configured: true},
			{dir: "misc", topic: "slow", names: [2]string{"Latency", "selected"}, threshold: selected, configured: true},
		},
		"+performance,misc":           {{dir: "misc", topic: "slow", names: [2]string{"Basic", "5000Nodes"}, threshold: basic}},
		"slow,Basic,-Basic/5000Nodes": {{dir: "misc", topic: "slow", names: [2]string{"Basic", "5Nodes/small one"}}},
		"performance,-short":          nil,
		"none":                        {},
	} {
		got, err := selectWorkloads([]byte(testCases), "misc", "slow", filter)
		if err != nil {
			t.Fatal(err)
		}
		if filter == "performance,-short" {
			if len(got) != 3 {
				t.Errorf("%s: got %v", filter, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(selection{}), equateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", filter, diff)
		}
	}
	if _, err := selectWorkloads([]byte("- name: [1]"), "misc", "", ""); err == nil {
		t.Error("a file that is no list of test cases is accepted")
	}
}

func equateEmpty() cmp.Option {
	return cmp.FilterValues(func(a, b []selection) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
}

// Package testing splits names at slashes and replaces spaces.
func TestOneWorkloadIsRunAtATime(t *testing.T) {
	t.Parallel()
	r := selection{names: [2]string{"Basic", "5Nodes/small one+x"}}
	const want = `^BenchmarkPerfScheduling$/^Basic$/^5Nodes$/^small_one\+x$`
	if got := r.pattern(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Test cases with a configuration of their own keep it, and everything else is unchanged.
func TestTestCasesGetTheConfigurationOfTheScheduler(t *testing.T) {
	t.Parallel()
	text, err := setSchedulerConfig([]byte(testCases), "/tmp/mine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for part, times := range map[string]int{
		"schedulerConfigPath: /tmp/mine.yaml": 1, "schedulerConfigPath: own.yaml": 1, "# a comment": 1,
		"nodes: 5000000}": 1, "threshold: {fast: 10, slow: 20}": 1,
	} {
		if got := strings.Count(string(text), part); got != times {
			t.Errorf("%q: got %d times, want %d:\n%s", part, got, times, text)
		}
	}
	if text, err := setSchedulerConfig(nil, "/tmp/mine.yaml"); err != nil || len(text) > 0 {
		t.Errorf("without test cases: got %q, %v", text, err)
	}
}

func TestTopicIsReadFromUpstreamsTest(t *testing.T) {
	t.Parallel()
	const call = `	perf.RunBenchmarkPerfScheduling(b, "performance-config.yaml", "tas", nil%s)` + "\n"
	for given, want := range map[string][2]string{
		strings.Replace(call, "%s", "", 1):                       {"tas", ""},
		strings.Replace(call, "%s", ", perf.WithPreRunFn(f)", 1): {"tas", "perf.WithPreRunFn(f)"},
		"package tas": {"", ""},
	} {
		if topic, options := topicOf([]byte(given)); [2]string{topic, options} != want {
			t.Errorf("%s: got %s, %s", given, topic, options)
		}
	}
}

func TestHarnessGetsWhatItAppliesOfAConfiguration(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	for name, c := range map[string]struct{ given, want string }{
		"nothing differs from the default": {head + "clientConnection: {qps: 1}\nprofiles: [{schedulerName: mine}]\n", ""},
		"plugins and parallelism": {
			head + "parallelism: 8\nleaderElection: {leaderElect: false}\n" +
				"profiles: [{schedulerName: mine, plugins: {multiPoint: {enabled: [{name: A}]}}}]\n",
			"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 8\nprofiles:\n" +
				"- plugins:\n    multiPoint:\n      enabled:\n      - name: A\n  schedulerName: default-scheduler\n",
		},
	} {
		got, err := harnessConfiguration([]byte(c.given), "mine")
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	_, err := harnessConfiguration([]byte(head+"extenders: [{urlPrefix: \"http://localhost\"}]\n"), "mine")
	if !errors.Is(err, errNotApplied) {
		t.Errorf("extenders: got %v", err)
	}
}

const dataItems = `{"version": "v1", "dataItems": [
  {"data": {"Average": 120, "Perc99": 300}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput", "Name": "Basic/a"}},
  {"data": {"Average": 100, "Perc99": 200}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput", "Name": "Basic/b"}},
  {"data": {"Average": 4, "Perc99": 9}, "unit": "ms", "labels": {"Metric": "duration_seconds", "result": "scheduled"}},
  {"data": {"Average": 6, "Perc99": 50}, "unit": "ms", "labels": {"Metric": "duration_seconds", "result": "error"}}]}`

func TestOutcomeOfAWorkload(t *testing.T) {
	t.Parallel()
	items, err := parseDataItems([]byte(dataItems), "this", "v1.34.2")
	if err != nil {
		t.Fatal(err)
	}
	if got := items[0].Labels; got["side"] != "this" || got["release"] != "v1.34.2" || got["Name"] != "Basic/a" {
		t.Errorf("labels: got %v", got)
	}
	good, bad := outcome{items: items}, outcome{failure: "op 3: timed out"}
	latency := newThreshold(9, nil, &metricSelector{Name: "duration_seconds", DataBucket: "Perc99", ExpectLower: true,
		Labels: map[string]string{"result": "scheduled"}})
	for name, c := range map[string]struct {
		threshold Threshold
		samples   []outcome
		want      Side
	}{
		"without a threshold": {Threshold{}, []outcome{good, good}, Side{Rates: []float64{100, 100}, Rate: 100,
			Result: Passed}},
		"a threshold that is met": {newThreshold(99), []outcome{good}, Side{Rates: []float64{100}, Rate: 100,
			Measured: 100, Result: Passed}},
		"a threshold that is missed": {newThreshold(100), []outcome{good}, Side{Rates: []float64{100},
			Rate: 100, Measured: 100, Result: Missed, Reason: "SchedulingThroughput Average is 100"}},
		"an upper limit": {latency, []outcome{good}, Side{Rates: []float64{100}, Rate: 100, Measured: 9,
			Result: Missed, Reason: "duration_seconds Perc99 is 9"}},
		"a sample that failed": {newThreshold(1), []outcome{good, bad}, Side{Rates: []float64{100}, Rate: 100,
			Result: Failed, Reason: "op 3: timed out"}},
		"no measurement": {newThreshold(1), []outcome{{}}, Side{Rates: []float64{}, Result: Failed,
			Reason: "the harness has not measured SchedulingThroughput"}},
	} {
		c.want.Source = "this"
		if diff := cmp.Diff(c.want, evaluate("this", c.threshold, c.samples)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := parseDataItems([]byte("x"), "this", ""); err == nil {
		t.Error("a file without data items is accepted")
	}
}

func TestFailureIsReadFromTheOutput(t *testing.T) {
	t.Parallel()
	const missed = "    scheduler_perf.go:1423: op 2: a: expected SchedulingThroughput Average to be higher: got 1, want 2\n"
	const logged = "    testserver.go:512: Detected bazel env varaiables: TEST_WORKSPACE=\".\"\n" +
		"    scheduler_perf.go:1251: creating 0 pods in namespace \"init\"\n"
	const klog = "    configmap.go:7: E1130 19:35:47.780052] UnhandledError: Error while syncing\n"
	const full = "    x.go:5: full log output:\nI1128 12:00:00.0 x.go:3] text\n"
	for output, want := range map[string]string{
		"--- FAIL: BenchmarkPerfScheduling\n" + missed + "FAIL\n": "",
		logged + missed: "",
		klog + missed:   "",
		missed + "    scheduler_perf.go:1: op 3: timed out\n":                               "op 3: timed out",
		logged + "    goleak.go:50: found unexpected goroutines:\n" + full:                  "found unexpected goroutines:",
		missed + "    scheduler_perf.go:1: InFlightEvents should be empty\n":                "InFlightEvents should be empty",
		logged + "    util.go:1: start apiserver: no port\n" + full:                         "start apiserver: no port",
		logged + "    scheduler_perf.go:1020: FATAL ERROR:\n        \tread config\n" + full: "read config",
		logged + "    scheduler_perf.go:9: ERROR: read config\n" + full:                     "read config",
		full + "panic: no plugin\n\ngoroutine 1\n":                                          "panic: no plugin",
		"flag provided but not defined\n":                                                   "the harness failed: flag provided but not defined",
	} {
		if got := failureOf(output); got != want {
			t.Errorf("%s: got %q, want %q", output, got, want)
		}
	}
}

// Steps are counted without the workloads that are left out.
func TestWorkloadsWithAConfigurationAreLeftOutForOtherSchedulers(t *testing.T) {
	t.Parallel()
	own, free := selection{names: [2]string{"A", "own"}, configured: true}, selection{names: [2]string{"A", "free"}}
	byDefault, other := &harnessSide{}, &harnessSide{configured: true}
	for _, tt := range []struct {
		sides []*harnessSide
		want  []string
		notes int
	}{
		{[]*harnessSide{byDefault}, []string{"A/own", "A/free"}, 0},
		{[]*harnessSide{byDefault, other}, []string{"A/free"}, 1},
	} {
		some, notes := (&harness{sides: tt.sides}).measurable([]selection{own, free})
		var names []string
		for _, r := range some {
			names = append(names, r.name())
		}
		if !slices.Equal(names, tt.want) || len(notes) != tt.notes {
			t.Errorf("%d sides: got %v, notes %q; want %v, %d notes", len(tt.sides), names, notes, tt.want, tt.notes)
		}
	}
}

// A workload that another scheduler does not pass either says nothing about the scheduler.
func TestOnlyWhatAnotherSchedulerPassesIsAMiss(t *testing.T) {
	t.Parallel()
	side := func(result string, rate float64) Side {
		return Side{Source: "default", Result: result, Rate: rate, Reason: "it is slow"}
	}
	r := Result{Workloads: []Workload{
		{Name: "a", This: side(Missed, 10), Against: []Side{side(Missed, 10)}},
		{Name: "b", This: side(Missed, 10), Against: []Side{side(Missed, 10), side(Passed, 11)}},
		{Name: "c", This: side(Passed, 10), Against: []Side{side(Passed, 20)}},
		{Name: "d", This: side(Failed, 0), Against: []Side{side(Failed, 0)}},
		{Name: "e", This: side(Failed, 0), Against: []Side{side(Passed, 1)}},
		{Name: "f", This: side(Passed, 0), Against: []Side{side(Passed, 1)}},
	}}
	for i := range r.Workloads {
		r.Workloads[i].compare()
	}
	want := []string{
		"b: missed (it is slow), while default passes",
		"c: 0.50 times the pods per second of default, less than 0.9",
		"e: failed (it is slow), while default passes",
	}
	if diff := cmp.Diff(want, r.Misses(0.9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.note()
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "1 of 6 workloads have no rate") {
		t.Errorf("notes: got %q", r.Notes)
	}
	if got := r.Misses(0); len(got) != 2 {
		t.Errorf("without a limit: got %v", got)
	}
}
