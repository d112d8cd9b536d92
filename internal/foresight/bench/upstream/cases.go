package upstream

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// configFile is the name of the files with test cases (test/integration/scheduler_perf in
// kubernetes/kubernetes).
const configFile = "performance-config.yaml"

// testCase is a test case: the fields that are read here. The harness reads the others.
type testCase struct {
	Name                           string          `json:"name"`
	Labels                         []string        `json:"labels"`
	SchedulerConfigPath            string          `json:"schedulerConfigPath"`
	DefaultThresholdMetricSelector *metricSelector `json:"defaultThresholdMetricSelector"`
	Workloads                      []testWorkload  `json:"workloads"`
}

type testWorkload struct {
	Name                    string          `json:"name"`
	Labels                  []string        `json:"labels"`
	Threshold               limit           `json:"threshold"`
	ThresholdMetricSelector *metricSelector `json:"thresholdMetricSelector"`
}

// metricSelector selects the data items that a threshold is about.
type metricSelector struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	DataBucket  string            `json:"dataBucket"`
	ExpectLower bool              `json:"expectLower"`
}

// limit is a threshold: a number, or from 1.37 on a number for each topic.
type limit struct {
	all     float64
	byTopic map[string]float64
}

// UnmarshalJSON reads a number, or an object with a number for each topic.
func (l *limit) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &l.all) == nil {
		return nil
	}
	return json.Unmarshal(text, &l.byTopic)
}

func (l limit) of(topic string) float64 {
	if value, found := l.byTopic[topic]; found {
		return value
	}
	return l.all
}

// selection is a workload that was selected.
type selection struct {
	// dir is the directory, relative to scheduler_perf, that the paths in the files are relative to.
	dir, topic string
	// names of the test case and of the workload.
	names     [2]string
	threshold Threshold
	// configured is set if the test case has a configuration of the scheduler.
	configured bool
}

func (r selection) name() string { return r.names[0] + "/" + r.names[1] }

// pattern returns the regular expression of -test.bench for the workload alone. Package testing
// compares each part of a name that slashes separate, after replacing spaces.
func (r selection) pattern() string {
	parts := []string{"^" + benchmark + "$"}
	for _, name := range r.names {
		for part := range strings.SplitSeq(strings.ReplaceAll(name, " ", "_"), "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
	}
	return strings.Join(parts, "/")
}

// selectWorkloads returns the workloads of a file whose labels match filter. The topic, CASE and
// CASE/WORKLOAD are labels, too.
func selectWorkloads(text []byte, dir, topic, filter string) (selected []selection, err error) {
	var cases []testCase
	if err := yaml.Unmarshal(text, &cases); err != nil {
		return nil, fmt.Errorf("read test cases of %s: %w", dir, err)
	}
	for _, c := range cases {
		for _, w := range c.Workloads {
			r := selection{dir: dir, topic: topic, names: [2]string{c.Name, w.Name},
				configured: c.SchedulerConfigPath != ""}
			if !matchesLabels(filter, slices.Concat(c.Labels, w.Labels, []string{topic, c.Name, r.name()})) {
				continue
			}
			if value := w.Threshold.of(topic); value > 0 {
				r.threshold = newThreshold(value, w.ThresholdMetricSelector, c.DefaultThresholdMetricSelector)
			}
			selected = append(selected, r)
		}
	}
	return selected, nil
}

// matchesLabels reports whether a workload has the labels of a comma-separated filter, and none of
// the labels that follow a dash.
func matchesLabels(filter string, labels []string) bool {
	for label := range strings.SplitSeq(filter, ",") {
		name, excluded := strings.CutPrefix(label, "-")
		name = strings.TrimPrefix(name, "+")
		if name != "" && slices.Contains(labels, name) == excluded {
			return false
		}
	}
	return true
}

// setSchedulerConfig returns a file's text with path as the configuration of the scheduler in each
// test case that has none.
func setSchedulerConfig(text []byte, path string) ([]byte, error) {
	const field = "schedulerConfigPath"
	var document yamlnodes.Node
	if err := yamlnodes.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("set %s: %w", field, err)
	}
	if len(document.Content) != 1 {
		return text, nil
	}
	for _, c := range document.Content[0].Content {
		if slices.ContainsFunc(c.Content, func(n *yamlnodes.Node) bool { return n.Value == field }) {
			continue
		}
		var added yamlnodes.Node
		if err := added.Encode(map[string]string{field: path}); err != nil {
			return nil, fmt.Errorf("set %s: %w", field, err)
		}
		c.Content = append(c.Content, added.Content...)
	}
	return yamlnodes.Marshal(&document)
}

// benchmarkCall matches the call of the harness in upstream's own test of a topic.
var benchmarkCall = regexp.MustCompile(`RunBenchmarkPerfScheduling\(b, "` + regexp.QuoteMeta(configFile) +
	`", "([^"]+)", nil(.*)\)`)

// topicOf returns the topic that upstream's own test names. options are arguments, which only that
// test can pass.
func topicOf(test []byte) (topic, options string) {
	match := benchmarkCall.FindSubmatch(test)
	if match == nil {
		return "", ""
	}
	return string(match[1]), strings.Trim(string(match[2]), ", ")
}
